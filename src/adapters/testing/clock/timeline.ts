import { REAL, type Routine } from "../../../time/runtime.ts";

/** Which time a timer belongs to. */
type Kind = "queue" | "presence";

/**
 * A monotonic clock that stands still until it is set forward, and its timers.
 *
 * Timers of presence have a time of their own, which stands still while presence rests: all signs of life have been given
 * since something happened, and none of those who give them waits for another. Then time passes them over: they are put
 * off by as much. So an instant on the timeline is that of the queue's time.
 *
 * Instants are whole milliseconds, so that nothing fires in between. A timer that is due fires by itself, in a later turn of the
 * event loop. A timer that waits for a later instant fires when the clock is set to it.
 */
export class Timeline {
  #now: number;
  /** How many milliseconds presence has rested. */
  #rested = 0;
  #created = 0;
  readonly #timers = new Set<VirtualTimer>();
  #turn: NodeJS.Immediate | undefined;
  /** How often something has happened that routines may want to see. */
  #events = 0;
  /** How often a timer was set or has fired. */
  #changes = 0;
  /** Of each routine: how much had happened when it last looked. */
  readonly #looks = new WeakMap<object, number>();

  /** `now` is what it shows at first, in whole milliseconds. */
  constructor(now: number) {
    this.#now = now;
  }

  get now(): number {
    return this.#now;
  }

  /** The time of presence. */
  get presence(): number {
    return this.#now - this.#rested;
  }

  /** Grows whenever a timer is set or fires. */
  get changes(): number {
    return this.#changes;
  }

  /** Notes that something has happened: from now on, the clock stops again for routines. */
  happened(): void {
    this.#events++;
  }

  setTimeout(
    callback: () => void,
    delay = 0,
    routine?: Routine,
    kind: Kind = "queue",
  ): VirtualTimer {
    // Not exactly now: whoever sets it may still do something before it fires.
    const dueAt = Math.ceil(this.#now + Math.max(0, delay));
    const order = ++this.#created;
    const timer = new VirtualTimer(this, callback, { dueAt, order, routine, kind });
    this.#timers.add(timer);
    this.#changes++;
    if (dueAt <= this.#now) this.#turn ??= REAL.setImmediate(() => this.#fireNew());
    return timer;
  }

  clear(timer: VirtualTimer): void {
    this.#timers.delete(timer);
  }

  /** Whether a timer is due that has not fired yet, apart from routines that were passed over. */
  get isDue(): boolean {
    return this.#turn !== undefined;
  }

  /**
   * The next instant at which a timer fires, `limit` at most; undefined if there is none until then. Routines count if
   * something has happened since they last looked, or never if `withoutRoutines`; those of presence unless it rests.
   */
  next(limit: number, withoutRoutines = false): number | undefined {
    const rests = this.presenceRests(withoutRoutines);
    let next = Infinity;
    for (const timer of this.#timers) {
      const isPassed = timer.kind === "presence" ? rests : this.#isPassed(timer, withoutRoutines);
      if (!isPassed && timer.dueAt < next) next = timer.dueAt;
    }
    return next <= limit && next < Infinity ? Math.max(next, this.#now) : undefined;
  }

  /** Whether nothing of presence happens however much time passes. For `withoutRoutines` see {@link next}. */
  presenceRests(withoutRoutines = false): boolean {
    const timers = [...this.#timers].filter(({ kind }) => kind === "presence");
    const names = new Set(timers.map(({ routine }) => routine?.name));
    return timers.every((timer) => {
      const { isSteady = () => true, needs = () => [] } = timer.routine ?? {};
      const isPassed = this.#isPassed(timer, withoutRoutines);
      return isPassed && isSteady.call(timer.routine) && needs().every((name) => names.has(name));
    });
  }

  /** Sets the clock to a later instant. Presence rests for the last `rested` milliseconds until then. Nothing fires yet. */
  set(now: number, rested: number): void {
    this.#now = now;
    this.#rested += rested;
    for (const timer of this.#timers) if (timer.kind === "presence") timer.postpone(rested);
  }

  /**
   * Fires the earliest timer that is due; returns whether there was one. Routines fire after all others, and those that
   * were passed over only if `withPassed`.
   */
  fireOne(withPassed = false): boolean {
    const due = [...this.#timers]
      .filter(({ dueAt }) => dueAt <= this.#now)
      .filter((timer) => withPassed || timer.kind === "presence" || this.#isCurious(timer))
      .toSorted(inOrder);
    const [first] = due;
    if (first !== undefined) this.#fire(first);
    return first !== undefined;
  }

  /** Removes all timers and returns them, with the milliseconds that remain of each. */
  end(): { readonly timer: VirtualTimer; readonly remaining: number }[] {
    REAL.clearImmediate(this.#turn);
    this.#turn = undefined;
    const left = [...this.#timers].toSorted(inOrder);
    this.#timers.clear();
    return left.map((timer) => ({ timer, remaining: Math.max(0, timer.dueAt - this.#now) }));
  }

  /** Whether time passes over a timer when it is due. */
  #isPassed(timer: VirtualTimer, withoutRoutines: boolean): boolean {
    return timer.routine !== undefined && (withoutRoutines || !this.#isCurious(timer));
  }

  #isCurious({ routine }: VirtualTimer): boolean {
    return routine === undefined || (this.#looks.get(routine) ?? -1) < this.#events;
  }

  /** Fires what was due when it was set. */
  #fireNew(): void {
    this.#turn = undefined;
    const due = [...this.#timers].filter(({ dueAt, setAt }) => dueAt <= setAt).toSorted(inOrder);
    for (const timer of due) if (this.#timers.has(timer)) this.#fire(timer);
  }

  #fire(timer: VirtualTimer): void {
    this.#timers.delete(timer);
    this.#changes++;
    if (timer.routine !== undefined) this.#looks.set(timer.routine, this.#events);
    timer.callback();
  }
}

/** Routines come last. What they look after has been done by then. */
function inOrder(a: VirtualTimer, b: VirtualTimer): number {
  const isRoutine = (timer: VirtualTimer) => (timer.routine === undefined ? 0 : 1);
  return isRoutine(a) - isRoutine(b) || a.dueAt - b.dueAt || a.order - b.order;
}

/** A timer of a {@link Timeline}. It has the shape of one of Node's. */
export class VirtualTimer {
  readonly callback: () => void;
  readonly kind: Kind;
  readonly order: number;
  /** See `Time.setTimeout`. */
  readonly routine: Routine | undefined;
  /** The real timer that has replaced it. */
  successor: NodeJS.Timeout | undefined;
  readonly #timeline: Timeline;
  #dueAt: number;
  #setAt: number;

  constructor(
    timeline: Timeline,
    callback: () => void,
    {
      dueAt,
      order,
      routine,
      kind,
    }: {
      readonly dueAt: number;
      readonly order: number;
      readonly routine: Routine | undefined;
      readonly kind: Kind;
    },
  ) {
    this.#timeline = timeline;
    this.callback = callback;
    this.#dueAt = dueAt;
    this.#setAt = timeline.now;
    this.order = order;
    this.routine = routine;
    this.kind = kind;
  }

  /** When it fires, on the timeline. */
  get dueAt(): number {
    return this.#dueAt;
  }

  /** When it was set, on the timeline. */
  get setAt(): number {
    return this.#setAt;
  }

  postpone(milliseconds: number): void {
    this.#dueAt += milliseconds;
    this.#setAt += milliseconds;
  }

  clear(): void {
    this.#timeline.clear(this);
    REAL.clearTimeout(this.successor);
  }

  // A virtual timer never keeps a process alive.
  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return false;
  }
}
