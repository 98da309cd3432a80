import { queueTime } from "./runtime.ts";

/**
 * The instants at which the timers of one process are due together, so that what they do can be one command. Each
 * process has its own instants.
 */
export class Steps {
  readonly #phase = Math.random();

  /** Returns how many milliseconds remain until the next instant of this period: `period` at most, and hardly more. */
  until(period: number): number {
    const now = queueTime.now();
    const step = Math.floor(now / period - this.#phase) + 1;
    const remaining = (step + this.#phase) * period - now;
    // A timer may fire a little early. It has had that instant.
    return remaining < TOLERANCE ? remaining + period : remaining;
  }
}

/** Milliseconds. */
const TOLERANCE = 20;
