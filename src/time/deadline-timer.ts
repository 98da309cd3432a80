/**
 * One timer for one deadline, however far away it is.
 *
 * Instants are milliseconds on the monotonic clock (`performance.now()`), so a step of the wall clock
 * moves nothing.
 */
export class DeadlineTimer {
  readonly #onDue: () => void;
  #dueAt = Infinity;
  #timeout: NodeJS.Timeout | undefined;

  constructor(onDue: () => void) {
    this.#onDue = onDue;
  }

  /** Arms the timer for `at`, whatever it was armed for. Infinity disarms it. */
  reset(at: number): void {
    clearTimeout(this.#timeout);
    this.#timeout = undefined;
    this.#dueAt = at;
    if (at !== Infinity) this.#sleep();
  }

  /** Disarms the timer. */
  clear(): void {
    this.reset(Infinity);
  }

  #sleep(): void {
    // Node fires a timeout above 2^31-1 ms at once, so a long sleep is cut into pieces. Rounded up,
    // since a timer that fires early costs a look at Redis that finds nothing.
    const remaining = Math.max(0, Math.ceil(this.#dueAt - performance.now()));
    this.#timeout = setTimeout(() => this.#wake(), Math.min(remaining, MAX_TIMEOUT));
  }

  #wake(): void {
    // Node counts from the loop's cached time, up to a millisecond ago, and so fires early at times.
    if (this.#dueAt > performance.now()) {
      this.#sleep();
      return;
    }
    this.#dueAt = Infinity;
    this.#timeout = undefined;
    this.#onDue();
  }
}

/** A day: well below the 2^31-1 ms (24.8 days) that Node can count. */
const MAX_TIMEOUT = 86_400_000;
