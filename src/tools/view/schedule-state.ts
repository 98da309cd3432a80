import type { Schedule } from "../../index.ts";

export type { Schedule } from "../../index.ts";

/**
 * What there is to know of a schedule at once:
 * - `active`: its next ticks are planned
 * - `paused`: until it is resumed
 * - `over`: no tick comes any more
 * - `unplanned`: its next messages should have been planned a while ago, and no process has
 */
export type ScheduleState = "active" | "paused" | "over" | "unplanned";

/** The state of a schedule at `now` (epoch ms). While the queue is paused, nothing is planned. */
export function stateOfSchedule(
  { isPaused, planAt }: Pick<Schedule, "isPaused" | "planAt">,
  now: number,
  isQueuePaused = false,
): ScheduleState {
  if (isPaused) return "paused";
  if (planAt === Infinity) return "over";
  return planAt < now - LATE && !isQueuePaused ? "unplanned" : "active";
}

/** Any process with a transfer task plans within 30 s and its sweep's tolerance (ms). */
const LATE = 60_000;

/** When a schedule recurs, in words: `30 2 * * * Europe/Berlin`, `every 10m`, `a calendar of its own`. */
export function ruleInWords(
  { every, phase = 0, cron, timeZone }: Pick<Schedule, "every" | "phase" | "cron" | "timeZone">,
  duration: (milliseconds: number) => string,
): string {
  if (every !== undefined) {
    return `every ${duration(every)}${phase > 0 ? `, at ${duration(phase)}` : ""}`;
  }
  return cron === undefined ? "a calendar of its own" : `${cron} ${timeZone}`;
}
