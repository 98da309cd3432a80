import { queueTime } from "./runtime.ts";

/**
 * A span of milliseconds that counts from the call which has made it, also while the call waits for Redis. As an argument
 * of a script it is what is left of it when the connection can be used.
 *
 * What a call waits for the connection is common to all that wait, so their deadlines keep the order of the calls. What
 * each takes on its own way differs by a millisecond or two, and is not counted: then it could change the order.
 */
export class Delay {
  readonly #milliseconds: number;
  readonly #calledAt: number;

  /** @param calledAt when the call was made (`queueTime.now()`). Defaults to now. */
  constructor(milliseconds: number, calledAt = queueTime.now()) {
    this.#milliseconds = milliseconds;
    this.#calledAt = calledAt;
  }

  /** The same, longer by so many milliseconds. */
  plus(milliseconds: number): Delay {
    return new Delay(this.#milliseconds + milliseconds, this.#calledAt);
  }

  /**
   * What is left of it for a call whose connection can be used since `readyAt` (`queueTime.now()`). Whole milliseconds are
   * taken off, so that nothing is early by the call. Negative if it is over: so what is overdue keeps the
   * order of its deadlines.
   */
  restAt(readyAt: number): number {
    return this.#milliseconds - Math.max(0, Math.floor(readyAt - this.#calledAt));
  }
}
