import { availableParallelism, cpus, loadavg } from "node:os";

/** The machine that the numbers depend on. */
export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly node: string;
  readonly redis: string;
  /** The load of the last minute before the benchmark; above 0.2 or so the machine was not quiet. */
  readonly load: number;
  /**
   * The longest pause, in milliseconds, of a process that was busy for a second: the machine's share of every maximum.
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
