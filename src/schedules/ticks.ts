import { types } from "node:util";
import { within } from "../queue/message/bucket.ts";
import { dayOf, Zone } from "../time/zone.ts";
import type { ScheduleCalendar } from "./calendar.ts";
import type { Rule } from "./rule.ts";

/** The ticks that a schedule skips. */
export interface Passed {
  /** The last of them (epoch ms). */
  readonly last: number;
  /** How many there are; of very many, as many as were counted. */
  readonly count: number;
}

/**
 * The ticks of one schedule, computed alike in every process: its calendar between start and end, without what is
 * excluded. All instants are epoch milliseconds.
 *
 * A tick of cron costs some 0.2 ms, so callers compute few at a time.
 */
export class Ticks {
  readonly #name: string;
  readonly #rule: Rule;
  readonly #calendar: ScheduleCalendar;
  readonly #days: ReadonlySet<string>;
  /** What was computed already. The ticks of one plan are asked for again and again. */
  readonly #known = new Map<number, number | undefined>();

  constructor(name: string, rule: Rule, calendar: ScheduleCalendar) {
    this.#name = name;
    this.#rule = rule;
    this.#calendar = calendar;
    this.#days = new Set(rule.except?.filter((one) => typeof one === "string"));
  }

  /**
   * The first tick after an instant; undefined if there is none.
   *
   * @throws {TypeError} if the calendar returns something else than a later instant or null.
   */
  next(after: number): number | undefined {
    if (!this.#known.has(after)) this.#known.set(after, this.#compute(after));
    return this.#known.get(after);
  }

  #compute(after: number): number | undefined {
    const { startAt = -Infinity, endAt = Infinity } = this.#rule;
    let from = Math.max(after, startAt - 1);
    // Each turn leaves an exclusion behind.
    for (;;) {
      const tick = this.#nextOfCalendar(from);
      if (tick === undefined || tick > endAt) return undefined;
      const end = this.#endOfExclusion(tick);
      if (end === undefined) return tick;
      // Where clocks are set back across midnight, the next day begins before the rest of this one.
      from = Math.max(tick, end - 1);
    }
  }

  /** When the message of a tick is due; `following` is the next tick. No jitter makes a message as late as that. */
  deadlineOf(tick: number, following: number | undefined): number {
    const { spread = 0, jitter = 0 } = this.#rule;
    const delay = spread === 0 ? 0 : within(spread, this.#name);
    if (jitter === 0) return tick + delay;
    const most = following === undefined ? jitter : Math.min(jitter, following - tick - 1);
    return tick + delay + Math.min(within(jitter, `${this.#name}@${tick}`), most);
  }

  /** The ticks after `after` whose messages are due up to `latest`; undefined if there are none. */
  passedUntil(after: number, latest: number): Passed | undefined {
    const { spread = 0, jitter = 0 } = this.#rule;
    let passed = this.#until(after, latest - spread - jitter);
    // Of the next ones jitter decides.
    let tick = this.next(passed?.last ?? after);
    while (tick !== undefined && tick <= latest) {
      const following = this.next(tick);
      if (this.deadlineOf(tick, following) > latest) break;
      passed = { last: tick, count: (passed?.count ?? 0) + 1 };
      tick = following;
    }
    return passed;
  }

  /** The ticks after `after` up to `latest`. */
  #until(after: number, latest: number): Passed | undefined {
    let [last, count] = [after, 0];
    let tick = this.next(after);
    for (; tick !== undefined && tick <= latest && count < COUNTED; tick = this.next(tick)) {
      [last, count] = [tick, count + 1];
    }
    if (count === 0) return undefined;
    // The last one is searched for by halves, since a million may be in between.
    for (let high = tick === undefined || tick > latest ? last : latest; last < high;) {
      const middle = Math.floor((last + high) / 2);
      const found = this.next(middle);
      if (found !== undefined && found <= latest) last = found;
      else high = middle;
    }
    return { last, count };
  }

  #nextOfCalendar(from: number): number | undefined {
    const next: unknown = this.#calendar.next(new Date(from));
    if (next === null) return undefined;
    const tick = types.isDate(next) ? next.getTime() : NaN;
    if (tick > from) return tick;
    throw new TypeError(
      `the calendar of schedule ${JSON.stringify(this.#name)} must return a later Date or null`,
    );
  }

  /** The end of an exclusion around a tick, which is outside of it; undefined if there is none. */
  #endOfExclusion(tick: number): number | undefined {
    const { except = [], timeZone } = this.#rule;
    for (const one of except) {
      if (typeof one !== "string" && one.from <= tick && tick < one.to) return one.to;
    }
    if (this.#days.size === 0) return undefined;
    const zone = Zone.named(timeZone);
    if (zone === undefined) return undefined;
    const day = dayOf(zone.localAt(tick));
    return this.#days.has(day) ? zone.instantOf(Date.parse(`${day}T00:00Z`) + DAY) : undefined;
  }
}

const DAY = 86_400_000;

/** Up to so many ticks that were missed are counted: of cron some 20 ms. */
const COUNTED = 100;
