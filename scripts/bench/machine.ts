import { availableParallelism, cpus, loadavg } from "node:os";

/** What the numbers depend on. */
export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly node: string;
  readonly redis: string;
  /** Of the last minute, before the benchmark began: above 0.2 or so it was not alone. */
  readonly load: number;
  /**
   * The longest time, in milliseconds, for which a process that never waits stood still within a
   * second: the machine's share in every maximum.
   */
  readonly stall: number;
}

export function describeMachine(redis: string): Machine {
  return {
    processor: cpus()[0]?.model.trim() ?? "unknown",
    cores: availableParallelism(),
    node: process.version,
    redis,
    load: loadavg()[0] ?? NaN,
    stall: longestStall(1000),
  };
}

function longestStall(duration: number): number {
  let longest = 0;
  const startedAt = performance.now();
  for (let last = startedAt; last < startedAt + duration;) {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  }
  return longest;
}
