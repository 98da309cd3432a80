import type { BusyWait } from "./busy-wait.ts";
import { clearImmediate, queueTime, setImmediate, type Routine, type Time } from "./runtime.ts";

/**
 * One timer for one deadline, however far away it is.
 *
 * Instants are milliseconds of `queueTime.now()`, or of another time that is given, so a step of the wall clock does not
 * move the deadline.
 *
 * Node's timers fire a millisecond or two late. A *punctual* timer wakes early and then checks the time in each turn of
 * the event loop, which costs processor time: as much as its {@link BusyWait} allows. It wakes up to 2 ms early for a
 * deadline that comes a while after the one before. Where deadlines are dense it checks for half a millisecond at most, and
 * rather lets a timeout be late by as much. When nothing is left to spend, it is an ordinary one.
 */
export class DeadlineTimer {
  readonly #onDue: () => void;
  readonly #busyWait: BusyWait | undefined;
  readonly #time: Time;
  #dueAt = Infinity;
  #lastDueAt = -Infinity;
  #timeout: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #routine: Routine | undefined;
  /** Since when it checks the time. */
  #checkingSince: number | undefined;

  /** A `busyWait` makes it punctual. */
  constructor(onDue: () => void, time: Time = queueTime, busyWait?: BusyWait) {
    this.#onDue = onDue;
    this.#time = time;
    this.#busyWait = busyWait;
  }

  /**
   * Arms the timer for `at`, which replaces the current deadline. Infinity disarms it. For `routine` see
   * {@link Time.setTimeout}.
   */
  reset(at: number, routine?: Routine): void {
    this.#routine = routine;
    this.#time.clearTimeout(this.#timeout);
    clearImmediate(this.#immediate);
    this.#endChecking();
    this.#dueAt = at;
    if (at !== Infinity) this.#sleep();
  }

  /** Disarms the timer. */
  clear(): void {
    this.reset(Infinity);
  }

  #sleep(): void {
    const early = this.#early;
    const left = this.#dueAt - this.#time.now() - early;
    // A punctual timer for an instant that has passed is due in the next turn: a timeout would take a millisecond.
    if (left <= 0 && this.#busyWait !== undefined && !this.#time.isExact) {
      this.#checkingSince ??= this.#time.now();
      this.#immediate = setImmediate(() => this.#wake());
      return;
    }
    this.#endChecking();
    // Node fires a timeout above 2^31-1 ms at once, so sleep in pieces. Round up, because waking before the deadline
    // costs another timeout.
    const longest = this.#time.isExact ? Infinity : MAX_TIMEOUT;
    const timeout = Math.min(Math.max(0, Math.ceil(left)), longest);
    this.#timeout = this.#time.setTimeout(() => this.#wake(), timeout, this.#routine);
  }

  #wake(): void {
    if (this.#time.now() < this.#dueAt) {
      // A piece of a long sleep has ended, or Node fired early: it counts from the loop's cached time, which may be a
      // millisecond old. Or this turn was too early.
      this.#sleep();
      return;
    }
    this.#endChecking();
    this.#lastDueAt = this.#dueAt;
    this.#dueAt = Infinity;
    this.#onDue();
  }

  #endChecking(): void {
    if (this.#checkingSince === undefined) return;
    this.#busyWait?.spend(this.#time.now() - this.#checkingSince);
    this.#checkingSince = undefined;
  }

  /** How many milliseconds before the deadline it begins to check the time in each turn of the event loop. */
  get #early(): number {
    if (this.#time.isExact || this.#busyWait?.isAllowed !== true) return 0;
    const gap = this.#dueAt - this.#lastDueAt;
    return Math.min(gap > RARE ? EARLY : CLOSE, this.#busyWait.startBefore(gap));
  }
}

/** Milliseconds by which a punctual timer wakes early at most for a rare deadline. */
const EARLY = 2;

/** The same where deadlines are dense: what a timeout of one millisecond less would be late. */
const CLOSE = 0.5;

/** More than this many milliseconds between two deadlines make the second one rare. */
const RARE = 10;

/** A day in milliseconds, well below Node's limit of 2^31-1 ms (24.8 days). */
const MAX_TIMEOUT = 86_400_000;
