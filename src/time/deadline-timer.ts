import { clearImmediate, queueTime, setImmediate, type Time } from "./runtime.ts";

/**
 * One timer for one deadline, however far away it is.
 *
 * Instants are milliseconds of `performance.now()`, of the queue's time unless another one is given, so a step of the wall clock does not move the deadline.
 *
 * Node's timers fire a millisecond or two late. A *punctual* timer wakes 2 ms early and then checks the time in each
 * turn of the event loop, which costs up to 2 ms of processor time. It does so only for a deadline that comes a while
 * after the one before: where deadlines are dense, the wake-up for one deadline usually serves the next one, too.
 */
export class DeadlineTimer {
  readonly #onDue: () => void;
  readonly #isPunctual: boolean;
  readonly #time: Time;
  #dueAt = Infinity;
  #lastDueAt = -Infinity;
  #timeout: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #routine: object | undefined;

  constructor(
    onDue: () => void,
    kind: "ordinary" | "punctual" = "ordinary",
    time: Time = queueTime,
  ) {
    this.#onDue = onDue;
    this.#time = time;
    this.#isPunctual = kind === "punctual";
  }

  /**
   * Arms the timer for `at`, which replaces the current deadline. Infinity disarms it. For `routine` see
   * {@link Time.setTimeout}.
   */
  reset(at: number, routine?: object): void {
    this.#routine = routine;
    this.#time.clearTimeout(this.#timeout);
    clearImmediate(this.#immediate);
    this.#dueAt = at;
    if (at !== Infinity) this.#sleep();
  }

  /** Disarms the timer. */
  clear(): void {
    this.reset(Infinity);
  }

  #sleep(): void {
    // Node fires a timeout above 2^31-1 ms at once, so sleep in pieces. Round up, because waking before the deadline
    // costs another timeout.
    const remaining = Math.ceil(this.#dueAt - this.#time.now()) - (this.#isRare ? EARLY : 0);
    const timeout = Math.min(Math.max(0, remaining), this.#time.isExact ? Infinity : MAX_TIMEOUT);
    this.#timeout = this.#time.setTimeout(() => this.#wake(), timeout, this.#routine);
  }

  #wake(): void {
    const remaining = this.#dueAt - this.#time.now();
    if (remaining <= 0) {
      this.#lastDueAt = this.#dueAt;
      this.#dueAt = Infinity;
      this.#onDue();
    } else if (this.#isRare && remaining <= EARLY) {
      this.#immediate = setImmediate(() => this.#wake());
    } else {
      // A piece of a long sleep has ended, or Node fired early: it counts from the loop's cached time, which may be a
      // millisecond old.
      this.#sleep();
    }
  }

  get #isRare(): boolean {
    return this.#isPunctual && !this.#time.isExact && this.#dueAt - this.#lastDueAt > RARE;
  }
}

/** Milliseconds by which a punctual timer wakes early. */
const EARLY = 2;

/** More than this many milliseconds between two deadlines make the second one rare. */
const RARE = 10;

/** A day in milliseconds, well below Node's limit of 2^31-1 ms (24.8 days). */
const MAX_TIMEOUT = 86_400_000;
