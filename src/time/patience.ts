import { DeadlineTimer } from "./deadline-timer.ts";

/** How long somebody waits for something to end: without a limit, until one is set. */
export class Patience {
  readonly #timer = new DeadlineTimer(() => this.#giveUp());
  readonly #isOver: Promise<boolean>;
  #giveUp: () => void = () => {};
  #endsAt = Infinity;
  #isNeeded = true;

  constructor() {
    this.#isOver = new Promise((resolve) => {
      this.#giveUp = () => resolve(false);
    });
  }

  /** From now on it lasts this many milliseconds at most. Of several limits the earliest holds. */
  limit(duration: number): void {
    this.#endsAt = Math.min(this.#endsAt, performance.now() + duration);
    if (this.#isNeeded) this.#timer.reset(this.#endsAt);
  }

  /** Waits for `work`, which must not reject; resolves with whether it has ended. To be called once. */
  async waitFor(work: Promise<unknown>): Promise<boolean> {
    const hasEnded = await Promise.race([work.then(() => true), this.#isOver]);
    this.#isNeeded = false;
    this.#timer.clear();
    return hasEnded;
  }
}
