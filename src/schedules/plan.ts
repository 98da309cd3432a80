import { createHash, randomBytes } from "node:crypto";
import type { ScheduleCalendar } from "./calendar.ts";
import type { PlannedTick, ScheduleRecord } from "./record.ts";
import type { Rule } from "./rule.ts";
import { Ticks } from "./ticks.ts";

/** A tick whose message is put into the queue. */
export interface Put extends PlannedTick {
  readonly payload: Buffer;
  /** For how many milliseconds after its deadline its message may be delivered; undefined for ever. */
  readonly deliverWithin: number | undefined;
}

/** What it takes to plan a schedule. */
export interface Recipe {
  readonly ticks: Ticks;
  /** Makes the payload of the message of a tick. */
  readonly payloadOf: (tick: number) => Buffer;
}

/** A change of a schedule: its record, and the messages that are put and withdrawn with it, in one step. */
export interface Plan {
  readonly record: ScheduleRecord;
  readonly puts: readonly Put[];
  /** Messages of the record before. */
  readonly withdrawn: readonly PlannedTick[];
}

/** What a user says about a schedule. */
export type Declaration = Pick<
  ScheduleRecord,
  "rule" | "payload" | "hasCalendar" | "version" | "set"
>;

/**
 * Whether a declaration says what the record says already. What a function does is not compared. A `startAt` that moves no
 * tick behind `now` is the same: a process may well say that a schedule begins as the process does.
 */
export function isSame(
  name: string,
  record: ScheduleRecord,
  declared: Declaration,
  calendar: ScheduleCalendar,
  now: number,
): boolean {
  const { rule, payload, hasCalendar, version, set } = declared;
  const { startAt, ...others } = record.rule;
  const { startAt: declaredStart, ...declaredOthers } = rule;
  const nextOf = (one: Rule) => new Ticks(name, one, calendar).next(now);
  return (
    JSON.stringify(declaredOthers) === JSON.stringify(others) &&
    (startAt === declaredStart || nextOf(record.rule) === nextOf(rule)) &&
    (payload === undefined
      ? record.payload === undefined
      : record.payload !== undefined && payload.equals(record.payload)) &&
    hasCalendar === record.hasCalendar &&
    version === record.version &&
    set === record.set
  );
}

/**
 * Adds a schedule, or replaces what was declared before. The messages of the old form that are not due yet are withdrawn,
 * and ticks count from now on.
 */
export function declare(
  old: ScheduleRecord | undefined,
  declared: Declaration,
  recipe: Recipe,
  now: number,
): Plan {
  const before = old ?? NOTHING;
  const withdrawn = before.planned.filter(({ deadline }) => deadline > now);
  const record: ScheduleRecord = {
    ...begin(before, declared.rule, now),
    ...declared,
    generation: randomBytes(4).toString("hex"),
    isPaused: before.isPaused,
    count: before.count - withdrawn.length,
    missed: before.missed,
    planned: [],
  };
  return { ...advance(record, recipe, now), withdrawn };
}

/** Plans a schedule again at once, of which Redis has lost when. */
export function planAgain(old: ScheduleRecord, now: number): Plan {
  const planAt = old.planAt === Infinity ? Infinity : now;
  return { record: { ...old, planAt }, puts: [], withdrawn: [] };
}

/**
 * A digest of what a set declares: its schedules by name, without what a function does, and without `startAt`, which may
 * be another one at each start.
 */
export function digestOf(declarations: ReadonlyMap<string, Declaration>): string {
  const hash = createHash("sha256");
  for (const [name, declared] of [...declarations].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const { rule, payload, hasCalendar, version } = declared;
    const { startAt: _, ...others } = rule;
    hash.update(JSON.stringify([name, others, payload?.toString("base64"), hasCalendar, version]));
  }
  return hash.digest("hex").slice(0, 16);
}

/** Pauses a schedule: withdraws its messages. */
export function pause(old: ScheduleRecord, now: number): Plan {
  const ahead = old.planned.filter(({ deadline }) => deadline > now).length;
  const record = {
    ...old,
    isPaused: true,
    count: old.count - ahead,
    lastAt: lastOf(old, now),
    planned: [],
    planAt: Infinity,
  };
  return { record, puts: [], withdrawn: old.planned };
}

/** Ends a pause. Ticks that fell due during it do not count. The next planner puts messages. */
export function resume(old: ScheduleRecord, now: number): Plan {
  const record = { ...old, ...begin(old, old.rule, now), isPaused: false, planAt: now };
  return { record, puts: [], withdrawn: [] };
}

/**
 * Plans the ticks of the next 30 s, at least two and at most 100, as they follow on the watermark.
 *
 * Ticks that are due by now are late: no process has planned for a while. `misfire` decides: `once` plans the last one, `all` up to
 * `maxCatchUp` of them, the earliest first, and `skip` those that are late by `misfireGrace` at most. One step plans 100 at most;
 * the schedule is then planned again at once.
 */
export function advance(record: ScheduleRecord, recipe: Recipe, now: number): Plan {
  const { ticks, payloadOf } = recipe;
  const { misfire, misfireGrace, maxCatchUp, limit = Infinity } = record.rule;
  const kept = record.planned.filter(({ deadline }) => deadline > now);
  const idle = { ...record, lastAt: lastOf(record, now), planned: kept, planAt: Infinity };
  if (record.isPaused) return { record: idle, puts: [], withdrawn: [] };

  let { until, missed, caughtUp } = record;
  const passBy = (latest: number) => {
    const passed = ticks.passedUntil(until, latest);
    until = passed?.last ?? until;
    return passed;
  };
  if (until < record.since) passBy(record.since);
  let late: number | undefined;
  if (misfire !== "all") {
    const passed = passBy(misfire === "once" ? now : now - misfireGrace - 1);
    missed += passed?.count ?? 0;
    // Of those that were passed by, the last one comes nevertheless.
    if (misfire === "once" && passed !== undefined) [late, missed] = [passed.last, missed - 1];
  }

  const puts: Put[] = [];
  let planAt = Infinity;
  let ahead = kept.length;
  let tick = late ?? ticks.next(until);
  while (tick !== undefined && record.count + puts.length < limit) {
    const following = ticks.next(tick);
    const deadline = ticks.deadlineOf(tick, following);
    const isLate = deadline <= now;
    if (!isLate && ahead >= LEAST && (deadline > now + HORIZON || ahead >= MOST)) {
      // Half-way through what is planned.
      planAt = now + Math.ceil(((puts.at(-1) ?? kept.at(-1))!.deadline - now) / 2);
      break;
    }
    if (puts.length === MOST) {
      planAt = now;
      break;
    }
    if (isLate && misfire === "all" && caughtUp >= maxCatchUp) {
      missed += passBy(now)?.count ?? 0;
      tick = ticks.next(until);
      continue;
    }
    if (isLate) caughtUp++;
    else [caughtUp, ahead] = [0, ahead + 1];
    const deliverWithin = withinOf(following, deadline);
    puts.push({ tick, deadline, payload: payloadOf(tick), deliverWithin });
    until = tick;
    tick = following;
  }

  /** With `once`, a message may come until the next one is due, which replaces it. */
  function withinOf(following: number | undefined, deadline: number) {
    if (misfire === "all") return undefined;
    if (misfire === "skip") return misfireGrace;
    if (following === undefined) return undefined;
    return ticks.deadlineOf(following, ticks.next(following)) - deadline - 1;
  }

  const planned = [...kept, ...puts.map((put) => ({ tick: put.tick, deadline: put.deadline }))];
  const count = record.count + puts.length;
  const { tz: tzdata } = process.versions;
  return {
    record: { ...idle, until, missed, caughtUp, count, planned, planAt, tzdata },
    puts,
    withdrawn: [],
  };
}

/** Where ticks begin to count: behind the last one that was due, and behind all that are due by now. */
function begin(
  old: Pick<ScheduleRecord, "planned" | "lastAt">,
  { spread = 0, jitter = 0 }: ScheduleRecord["rule"],
  now: number,
): Pick<ScheduleRecord, "since" | "until" | "lastAt" | "caughtUp" | "planAt"> {
  const lastAt = lastOf(old, now);
  const until = Math.max(lastAt ?? 0, now - spread - jitter);
  return { since: now, until, lastAt, caughtUp: 0, planAt: now };
}

/** The last tick that was due by now. */
function lastOf(
  { planned, lastAt }: Pick<ScheduleRecord, "planned" | "lastAt">,
  now: number,
): number | undefined {
  return planned.findLast(({ deadline }) => deadline <= now)?.tick ?? lastAt;
}

const NOTHING = { planned: [], lastAt: undefined, isPaused: false, count: 0, missed: 0 } as const;

/** For how many milliseconds ahead ticks are planned. */
const HORIZON = 30_000;

/** How many are ahead at least, if so many come. */
const LEAST = 2;

/** How many are ahead at most, and how many one step plans. */
const MOST = 100;
