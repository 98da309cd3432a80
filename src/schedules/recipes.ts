import { cronCalendar, everyCalendar, type ScheduleCalendar } from "./calendar.ts";
import type { Declaration, Recipe } from "./plan.ts";
import type { ScheduleRecord } from "./record.ts";
import { Ticks } from "./ticks.ts";

/** What is code in the declaration of a schedule, which Redis cannot hold. */
export interface Code {
  /** Of the declaration: code of an older one must not plan a newer one. */
  readonly version: number;
  readonly calendar?: ScheduleCalendar | undefined;
  /** Makes the encoded payload of a tick. */
  readonly payload?: ((tick: number) => Buffer) | undefined;
}

/** The code of the schedules that this client has declared, by their names. */
export type Codes = Map<string, Code>;

/**
 * Returns what it takes to plan a schedule; undefined if only processes have it that declared the schedule.
 *
 * @throws {TypeError} if its ticks are those of a cron pattern, and croner is not installed.
 */
export async function recipeOf(
  name: string,
  { rule, payload, hasCalendar, version }: Declaration,
  declared: Code | undefined,
): Promise<Recipe | undefined> {
  const code = declared?.version === version ? declared : undefined;
  const payloadOf = payload === undefined ? code?.payload : () => payload;
  const calendar = hasCalendar ? code?.calendar : await calendarOf(rule);
  if (payloadOf === undefined || calendar === undefined) return undefined;
  return { ticks: new Ticks(name, rule, calendar), payloadOf };
}

/**
 * Returns the calendar of a rule that has its own, by `every` or `cron`.
 *
 * @throws {TypeError | RangeError} if the pattern is none, or croner is not installed.
 */
export async function calendarOf({
  every,
  phase,
  cron,
  timeZone,
}: ScheduleRecord["rule"]): Promise<ScheduleCalendar | undefined> {
  if (every !== undefined) return everyCalendar(every, phase);
  return cron === undefined ? undefined : await cronCalendar(cron, timeZone);
}
