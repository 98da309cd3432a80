/**
 * One timer for one deadline, however far away it is.
 *
 * Instants are milliseconds on the monotonic clock (`performance.now()`), so a step of the wall clock
 * moves nothing.
 *
 * Node's timers fire up to a millisecond or two late. A *punctual* timer wakes a little earlier and looks in
 * each turn of the event loop, which costs up to 2 ms of processor time. It does so only for a deadline that
 * comes a while after the last one: where there are many, others are about to look anyway.
 */
export class DeadlineTimer {
  readonly #onDue: () => void;
  readonly #isPunctual: boolean;
  #dueAt = Infinity;
  #lastDueAt = -Infinity;
  #timeout: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;

  constructor(onDue: () => void, kind: "ordinary" | "punctual" = "ordinary") {
    this.#onDue = onDue;
    this.#isPunctual = kind === "punctual";
  }

  /** Arms the timer for `at`, whatever it was armed for. Infinity disarms it. */
  reset(at: number): void {
    clearTimeout(this.#timeout);
    clearImmediate(this.#immediate);
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
    const remaining = Math.ceil(this.#dueAt - performance.now()) - (this.#isRare ? EARLY : 0);
    const timeout = Math.min(Math.max(0, remaining), MAX_TIMEOUT);
    this.#timeout = setTimeout(() => this.#wake(), timeout);
  }

  #wake(): void {
    const remaining = this.#dueAt - performance.now();
    if (remaining <= 0) {
      this.#lastDueAt = this.#dueAt;
      this.#dueAt = Infinity;
      this.#onDue();
    } else if (this.#isRare && remaining <= EARLY) {
      this.#immediate = setImmediate(() => this.#wake());
    } else {
      // Node counts from the loop's cached time, up to a millisecond ago, and so fires early at times.
      this.#sleep();
    }
  }

  get #isRare(): boolean {
    return this.#isPunctual && this.#dueAt - this.#lastDueAt > RARE;
  }
}

/** Milliseconds by which a punctual timer wakes early. */
const EARLY = 2;

/** Milliseconds between two deadlines from which on they are rare. */
const RARE = 10;

/** A day: well below the 2^31-1 ms (24.8 days) that Node can count. */
const MAX_TIMEOUT = 86_400_000;
