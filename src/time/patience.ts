import { DeadlineTimer } from "./deadline-timer.ts";
import { networkTime } from "./runtime.ts";

/** Waits for work to end: for ever, until {@link limit} sets a time limit. */
export class Patience {
  readonly #timer = new DeadlineTimer(() => this.#giveUp(), networkTime);
  readonly #isOver: Promise<boolean>;
  #giveUp: () => void = () => {};
  #endsAt = Infinity;
  #isNeeded = true;

  constructor() {
    this.#isOver = new Promise((resolve) => {
      this.#giveUp = () => resolve(false);
    });
  }

  /** Limits the wait to this many milliseconds from now. Of several limits, the earliest one holds. */
  limit(duration: number): void {
    this.#endsAt = Math.min(this.#endsAt, networkTime.now() + duration);
    if (this.#isNeeded) this.#timer.reset(this.#endsAt);
  }

  /** Waits for `work`, which must not reject; returns whether it ended in time. Must be called only once. */
  async waitFor(work: Promise<unknown>): Promise<boolean> {
    const hasEnded = await Promise.race([work.then(() => true), this.#isOver]);
    this.#isNeeded = false;
    this.#timer.clear();
    return hasEnded;
  }
}
