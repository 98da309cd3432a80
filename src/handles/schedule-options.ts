import type { CallOptions } from "../queue/call.ts";
import {
  checkDay,
  checkDuration,
  checkInstant,
  checkIterable,
  checkOptions,
  checkWhole,
  checkZone,
} from "../queue/checks.ts";
import { checkLane } from "../queue/flow.ts";
import type { InstantLike } from "../queue/instant.ts";
import type { ScheduleCalendar } from "../schedules/calendar.ts";
import type { Declaration } from "../schedules/plan.ts";
import type { Code } from "../schedules/recipes.ts";
import type { Misfire, Overlap, Rule, Span } from "../schedules/rule.ts";
import { Ticks } from "../schedules/ticks.ts";
import { types } from "node:util";

/** An instant at which a schedule recurs. */
export interface ScheduleTick {
  /** The schedule's name. */
  readonly name: string;
  /** The tick itself, without `jitter` and `spread`. */
  readonly at: Date;
}

/** What a schedule offers, and when: either `every` or `cron`. */
export interface ScheduleOptions<T = unknown> {
  /**
   * Milliseconds between two ticks: a whole number of at least 100.
   *
   * Ticks count from the epoch, not from the start of a process, so they do not drift. 86,400,000 ms is a day of UTC: for local
   * days use `cron`.
   */
  readonly every?: number;

  /** With `every`: shifts the ticks by this many milliseconds, less than `every`. Defaults to 0. */
  readonly phase?: number;

  /**
   * A cron pattern, such as `"30 2 * * *"`, with seconds in front if it has six fields; or any object with
   * `next(from: Date): Date | null`.
   *
   * Weekdays count from 0, Sunday. A pattern that means something else to Quartz or AWS is refused.
   *
   * A pattern needs the package croner (`npm install croner`) in the processes that declare schedules or move messages; each tick
   * costs them some 0.2 ms. An object is known only to processes that declare it: one of them has to run.
   */
  readonly cron?: string | ScheduleCalendar;

  /**
   * The payload of each message, or a function that makes it.
   *
   * A function is called when a message is placed, 30 s or two ticks before it is due, in a process that has declared
   * it: one such process has to run. Functions are not compared: a higher `version` replaces placed messages. The
   * function must return a payload, neither `undefined` nor a promise.
   */
  readonly payload: T | ((tick: ScheduleTick) => T);

  /** The time zone of the pattern, and of the days in `except`. Defaults to `"UTC"`. */
  readonly timeZone?: string;

  /**
   * The earliest tick. A new `startAt` that only leaves out past ticks, such as `new Date()` at each start, counts as no change.
   * Defaults to now.
   */
  readonly startAt?: InstantLike;

  /** The latest tick; inclusive. Defaults to no end. */
  readonly endAt?: InstantLike;

  /** The total number of ticks. Defaults to no limit. */
  readonly limit?: number;

  /**
   * Days such as `"2026-12-25"` without ticks, and spans `{ from, to }`, whose end is outside: 1,000 at most. Defaults to
   * none.
   */
  readonly except?: Iterable<string | { readonly from: InstantLike; readonly to: InstantLike }>;

  /**
   * The longest delay of a tick, in milliseconds: each tick gets a different delay, the same in every process. Must be
   * below the interval. Defaults to 0.
   */
  readonly jitter?: number;

  /**
   * The longest delay of all ticks, in milliseconds: the delay depends on the schedule's name, so that many schedules with one
   * pattern do not come at once. Must be below the interval. Defaults to 0.
   */
  readonly spread?: number;

  /**
   * What happens to ticks that are late because no process moved messages or the queue was paused. `"once"` delivers the last one;
   * `"all"` delivers up to `maxCatchUp` of them, the earliest first; `"skip"` delivers those that are late by `misfireGrace` at
   * most. Java's transfers deliver all placed ones. Defaults to `"once"`.
   */
  readonly misfire?: Misfire;

  /** With `misfire: "skip"`: for how many milliseconds a tick may be late. Defaults to 5,000. */
  readonly misfireGrace?: number;

  /**
   * With `misfire: "all"`: how many late ticks come, in addition to those already placed. The outage's later ones are
   * skipped. Defaults to 1,000.
   */
  readonly maxCatchUp?: number;

  /**
   * `"skip"` drops a run that is due while another run of the schedule is ready or in flight. Triggered and retried runs count,
   * too; a run that waits for its retry does not. Costs two reads and a write for each run.
   *
   * `"wait"` lets a run wait until the others are settled: one at a time is in hand, across all processes and their crashes,
   * including triggered and backfilled runs. `misfire` decides how many wait: with `"once"` the last one. Runs wait in a lane of
   * their own, `schedule:<name>`, whatever the queue's `flow` is; other messages are not affected. Not for queues with partitions.
   * Costs each run as much as a lane with a limit, and each transfer of the queue two reads.
   *
   * Both need a reliable queue. Defaults to `"allow"`.
   */
  readonly overlap?: Overlap;

  /**
   * In a queue whose `flow` has lanes: the lane in which each message waits for its turn, as for offers. In a partitioned queue,
   * the schedule's name still decides its partition. Costs the bytes of the name, and five more, in each message. Defaults to a
   * lane without a name.
   */
  readonly lane?: string;

  /** The priority of each message, as for offers: -100 to 100, the higher first. Defaults to 0. */
  readonly priority?: number;

  /**
   * The version of the declaration. A version below the stored one changes nothing, so an older release does not undo a
   * newer one. Defaults to 0.
   */
  readonly version?: number;
}

/** Options of `schedules.declare`. */
export interface DeclareOptions extends CallOptions {
  /**
   * The number of this declaration, which grows with each release: a build number, or a time. An older revision is refused, so a
   * process of an earlier release changes nothing, whenever it starts. The same revision with other content is refused, too.
   */
  readonly revision: number;
  /** Whether to return only what would change, and change nothing. Defaults to false. */
  readonly dryRun?: boolean;
}

/** Options of `schedules.backfill`. */
export interface BackfillOptions extends CallOptions {
  /** The first instant. */
  readonly from: InstantLike;
  /** The end of the span, exclusive. Ticks that are not due yet are returned but not offered: they come by themselves. */
  readonly to: InstantLike;
  /**
   * The most ticks to return, the earliest first: 1 to 10,000. Without a limit, a span of more than 100 ticks is refused, since a
   * wrong year has thousands. Defaults to none.
   */
  readonly limit?: number;
  /** Whether to return only the ticks, and offer nothing. Defaults to false. */
  readonly dryRun?: boolean;
}

/** A declaration that was checked, except for the checks that need its ticks. */
export interface CheckedSchedule {
  readonly declaration: Declaration;
  readonly code: Code;
}

/**
 * Checks the name of a schedule.
 *
 * @throws {TypeError | RangeError} unless it is a well-formed string of 1 to 100 bytes without control characters.
 */
export function checkScheduleName(value: unknown, what = "schedule name"): asserts value is string {
  if (typeof value !== "string")
    throw new TypeError(`${what} must be a string, got ${typeof value}`);
  if (!value.isWellFormed()) throw new TypeError(`${what} must be well-formed Unicode`);
  const bytes = Buffer.byteLength(value);
  if (bytes < 1 || bytes > MAX_NAME_BYTES) {
    throw new RangeError(`${what} must have 1 to ${MAX_NAME_BYTES} bytes of UTF-8, got ${bytes}`);
  }
  if (/\p{Cc}/u.test(value)) {
    throw new RangeError(`${what} must have no control characters, got ${JSON.stringify(value)}`);
  }
}

/**
 * Checks the options of a schedule; `encode` makes bytes of a payload.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value.
 * @throws {EncodeError | PayloadTooLargeError} if the payload cannot be encoded, or is too large.
 */
export function checkedSchedule<T>(
  name: string,
  options: ScheduleOptions<T>,
  { isReliable, encode }: { readonly isReliable: boolean; readonly encode: (payload: T) => Buffer },
): CheckedSchedule {
  checkOptions("schedule option", options, KNOWN);
  if (!("payload" in options)) throw new TypeError("a schedule must have a payload");
  const { payload, version = 0 } = options;
  checkWhole("version", version, 0, Number.MAX_SAFE_INTEGER);
  const { calendar, ...rule } = checkedRule(options, isReliable);
  const make = typeof payload === "function" ? (payload as (tick: ScheduleTick) => T) : undefined;
  return {
    declaration: {
      rule,
      payload: make === undefined ? encode(checkedPayload(payload as T)) : undefined,
      hasCalendar: calendar !== undefined,
      version,
    },
    code: {
      version,
      calendar,
      payload: make && ((tick) => encode(checkedPayload(make({ name, at: new Date(tick) })))),
    },
  };
}

/** @throws {TypeError} if it is undefined, or a promise: a function that returns nothing has forgotten something. */
function checkedPayload<T>(payload: T): T {
  if (payload === undefined) throw new TypeError("payload must not be undefined");
  if (!types.isPromise(payload)) return payload;
  throw new TypeError("payload must not be a promise: what makes it cannot wait");
}

function checkedRule(
  options: ScheduleOptions,
  isReliable: boolean,
): Rule & { readonly calendar: ScheduleCalendar | undefined } {
  const { every, phase, cron }: Partial<Record<"every" | "phase" | "cron", unknown>> = options;
  const { timeZone = "UTC", startAt, endAt, limit, except = [], jitter, spread } = options;
  const { misfire = "once", misfireGrace = 5000, maxCatchUp = 1000, overlap = "allow" } = options;
  const { lane, priority = 0 } = options;
  if ((every === undefined) === (cron === undefined)) {
    const got = every === undefined ? "neither" : "both";
    throw new TypeError(`a schedule must have either every or cron, got ${got}`);
  }
  if (every !== undefined) checkWhole("every", every, 100, MAX_EVERY, " ms");
  if (phase !== undefined) {
    if (every === undefined) throw new TypeError("phase goes with every, got it with cron");
    checkWhole("phase", phase, 0, every - 1, " ms");
  }
  const calendar = typeof cron === "object" ? checkedCalendar(cron) : undefined;
  if (cron !== undefined && calendar === undefined && typeof cron !== "string") {
    throw new TypeError(`cron must be a pattern or an object with next(from), got ${typeof cron}`);
  }
  checkZone("timeZone", timeZone);
  const start = startAt === undefined ? undefined : checkInstant("startAt", startAt);
  const end = endAt === undefined ? undefined : checkInstant("endAt", endAt);
  if (start !== undefined && end !== undefined && end < start) {
    throw new RangeError(`endAt must not be before startAt, got ${dated(end)} and ${dated(start)}`);
  }
  if (limit !== undefined) checkWhole("limit", limit, 1, Number.MAX_SAFE_INTEGER);
  if (jitter !== undefined) checkWhole("jitter", jitter, 0, MAX_EVERY, " ms");
  if (spread !== undefined) checkWhole("spread", spread, 0, MAX_EVERY, " ms");
  checkOneOf("misfire", misfire, ["once", "all", "skip"]);
  checkDuration("misfireGrace", misfireGrace);
  checkWhole("maxCatchUp", maxCatchUp, 0, 1_000_000);
  checkOneOf("overlap", overlap, ["allow", "skip", "wait"]);
  if (overlap !== "allow" && !isReliable) {
    throw new TypeError(
      `overlap "${overlap}" needs a reliable queue: a plain one does not know when a run has ended`,
    );
  }
  if (overlap === "wait" && lane !== undefined) {
    throw new TypeError('lane goes without overlap "wait": its runs wait in a lane of their own');
  }
  if (lane !== undefined) checkLane(lane);
  checkWhole("priority", priority, -100, 100);
  const exclusions = checkedExceptions(except);
  // Without what is undefined, since Redis stores none of it, and declarations are compared.
  return {
    ...(every !== undefined && { every }),
    ...(phase !== undefined && { phase }),
    ...(typeof cron === "string" && { cron }),
    timeZone,
    ...(start !== undefined && { startAt: start }),
    ...(end !== undefined && { endAt: end }),
    ...(limit !== undefined && { limit }),
    ...(exclusions.length > 0 && { except: exclusions }),
    ...(jitter !== undefined && jitter > 0 && { jitter }),
    ...(spread !== undefined && spread > 0 && { spread }),
    misfire,
    misfireGrace: Math.ceil(misfireGrace),
    maxCatchUp,
    overlap,
    ...(lane !== undefined && { lane }),
    ...(priority !== 0 && { priority }),
    calendar,
  };
}

/** An instant (epoch ms) in an error, as a date: epoch milliseconds tell a reader nothing. */
export function dated(instant: number): string {
  return new Date(instant).toISOString();
}

/** Why a pattern that croner can read never comes. */
function whyNever(pattern: string): string {
  const hasYear = pattern.trim().split(/\s+/).length === 7;
  return hasYear
    ? "its year is over, or no month in it has such a day"
    : "no month in it has such a day";
}

function checkedCalendar(value: object | null): ScheduleCalendar {
  const { next } = (value ?? {}) as { readonly next?: unknown };
  if (typeof next === "function") return value as ScheduleCalendar;
  throw new TypeError("cron must be a pattern or an object with next(from), got an object without");
}

function checkedExceptions(except: unknown): (string | Span)[] {
  checkIterable("except", except);
  const all = Array.from(except, (one, i): string | Span => {
    if (typeof one !== "object" || one === null) {
      checkDay(`except[${i}]`, one);
      return one;
    }
    checkOptions(`property of except[${i}]`, one, ["from", "to"]);
    const span = one as { readonly from?: unknown; readonly to?: unknown };
    const from = checkInstant(`except[${i}].from`, span.from);
    const to = checkInstant(`except[${i}].to`, span.to);
    if (from < to) return { from, to };
    throw new RangeError(`except[${i}].to must be after from, got ${dated(to)} and ${dated(from)}`);
  });
  if (all.length <= MAX_EXCEPTIONS) return all;
  throw new RangeError(`except must have at most ${MAX_EXCEPTIONS} items, got ${all.length}`);
}

function checkOneOf(name: string, value: unknown, known: readonly string[]): void {
  if (known.includes(value as string)) return;
  const all = known.map((one) => `"${one}"`).join(", ");
  throw new RangeError(`${name} must be one of ${all}, got ${JSON.stringify(value)}`);
}

/**
 * Checks what depends on the ticks of a schedule, at the instant `now`: that there are any, and that they are further
 * apart than jitter and spread are wide. A schedule whose `endAt` has passed is legal: it was declared earlier.
 *
 * @throws {RangeError} naming the option, the rule and the value.
 */
export function checkTicks(
  name: string,
  rule: Rule,
  calendar: ScheduleCalendar,
  now: number,
): void {
  const { endAt = Infinity, except: _, endAt: __, ...endless } = rule;
  if (endAt <= now) return;
  const all = new Ticks(name, endless, calendar);
  const first = all.next(now);
  if (first === undefined) {
    const got =
      rule.cron === undefined
        ? "a calendar without a date"
        : `${JSON.stringify(rule.cron)}, which never comes: ${whyNever(rule.cron)}`;
    throw new RangeError(`cron must come at some time, got ${got}`);
  }
  if (first <= endAt && new Ticks(name, rule, calendar).next(now) === undefined) {
    throw new RangeError("except must leave a tick, got exclusions of all ticks");
  }
  const { jitter = 0, spread = 0 } = rule;
  if (jitter + spread === 0) return;
  const interval = shortestOf(all, first);
  for (const [option, value] of Object.entries({ jitter, spread })) {
    if (value >= interval) {
      throw new RangeError(
        `${option} must be below the interval between two ticks, ${interval} ms, got ${value}`,
      );
    }
  }
}

/** The shortest interval between some of the next ticks. */
function shortestOf(ticks: Ticks, first: number): number {
  let shortest = Infinity;
  for (let i = 0, tick = first; i < LOOKED_AT; i++) {
    const next = ticks.next(tick);
    if (next === undefined) break;
    shortest = Math.min(shortest, next - tick);
    tick = next;
  }
  return shortest;
}

const KNOWN = [
  "every",
  "phase",
  "cron",
  "payload",
  "timeZone",
  "startAt",
  "endAt",
  "limit",
  "except",
  "jitter",
  "spread",
  "misfire",
  "misfireGrace",
  "maxCatchUp",
  "overlap",
  "lane",
  "priority",
  "version",
];

/** So that the key of a message, which holds the name and the tick, is a legal one. */
const MAX_NAME_BYTES = 100;

/** 30 years. */
const MAX_EVERY = 30 * 365.25 * 86_400_000;

const MAX_EXCEPTIONS = 1000;

/** Intervals that are looked at, of cron some 2 ms. */
const LOOKED_AT = 10;
