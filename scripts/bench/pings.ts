import type { Pings } from "./programs/prober.ts";

/** The durations of the PINGs sent between two instants (epoch ms), ascending. */
export function waitsBetween({ sentAt, waits }: Pings, from: number, to: number): number[] {
  return Array.from(waits)
    .filter((_, i) => (sentAt[i] ?? NaN) >= from && (sentAt[i] ?? NaN) <= to)
    .toSorted((a, b) => a - b);
}
