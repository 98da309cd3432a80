import { queueTime } from "./runtime.ts";

/**
 * What a process may spend on checking the time right before deadlines: so many milliseconds of each second. What is not
 * spent is kept for a second.
 */
export class BusyWait {
  readonly #perSecond: number;
  #left: number;
  #at = queueTime.now();

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
    this.#left = perSecond;
  }

  get isAllowed(): boolean {
    const now = queueTime.now();
    const gained = ((now - this.#at) * this.#perSecond) / 1000;
    this.#left = Math.min(this.#left + gained, this.#perSecond);
    this.#at = now;
    return this.#left > 0;
  }

  /**
   * How many milliseconds before a deadline to begin, if the one before it was `gap` milliseconds earlier, so that the checks spend
   * the time gained since then. A timeout of whole milliseconds ends at any instant of the last millisecond before the deadline, so
   * a short wait is seldom needed, and spares the most for its cost.
   */
  startBefore(gap: number): number {
    return Math.sqrt((2 * Math.max(0, gap) * this.#perSecond) / 1000);
  }

  /** Takes off milliseconds that were spent. The last check may overdraw it. */
  spend(milliseconds: number): void {
    this.#left -= milliseconds;
  }
}
