import type { Pings } from "./programs/prober.ts";

/** How long the PINGs took that were sent between two instants (epoch ms), in ascending order. */
export function waitsBetween({ sentAt, waits }: Pings, from: number, to: number): number[] {
  return Array.from(waits)
    .filter((_, i) => (sentAt[i] ?? NaN) >= from && (sentAt[i] ?? NaN) <= to)
    .toSorted((a, b) => a - b);
}
