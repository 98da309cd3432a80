import { queueTime } from "./runtime.ts";

/**
 * A span of milliseconds that counts from the call which has made it, however long the call waits until it is sent. As an
 * argument of a script it is what is left of it, by the process's monotonic clock, when the command is made.
 *
 * Only whole milliseconds are taken off, so that no message is early by the call.
 */
export class Delay {
  readonly #milliseconds: number;
  #calledAt: number;

  /** @param calledAt when the call was made (`queueTime.now()`). Defaults to now. */
  constructor(milliseconds: number, calledAt = queueTime.now()) {
    this.#milliseconds = milliseconds;
    this.#calledAt = calledAt;
  }

  /** What is left of it. Negative if it is over: so messages that are overdue keep the order of their deadlines. */
  get rest(): number {
    return this.#milliseconds - Math.floor(queueTime.now() - this.#calledAt);
  }

  /** Counts from now. */
  restart(): void {
    this.#calledAt = queueTime.now();
  }

  toString(): string {
    return String(this.rest);
  }

  toJSON(): number {
    return this.rest;
  }
}
