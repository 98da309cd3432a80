import { LAWS, problemsOf } from "../../view/health.ts";
import { stateOfSchedule, type Schedule } from "../../view/schedule-state.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import { agree, type CommandLine, type Finding } from "./finding.ts";
import { formatCount, formatDuration } from "../../view/words.js";

/** Checks whether somebody plans the schedules of a queue, and whether ticks were missed. */
export function* checkSchedules(
  { name, stats, schedules, listeners }: QueueReport,
  commandLine: CommandLine,
): Generator<Finding> {
  if (stats === undefined || schedules.length === 0) return;
  const { serverTime: now } = stats;
  if (problemsOf({ ...stats, listeners }).includes("unplanned")) {
    const stuck = schedules.filter((one) => stateOfSchedule(one, now) === "unplanned");
    const lost = stuck.filter(({ planAt }) => planAt === 0);
    const late = stuck.filter(({ planAt }) => planAt > 0);
    const code = late.filter(({ needs }) => needs === "code");
    const others = late.filter(({ needs }) => needs !== "code");
    if (lost.length > 0) yield forgotten(name, lost);
    if (code.length > 0) yield undeclared(name, code, now, commandLine);
    if (others.length > 0) yield incapable(name, others, now);
  }
  const waiting = schedules.filter((one) => stateOfSchedule(one, now) === "paused");
  if (waiting.length > 0) yield paused(name, waiting, commandLine);
  const missing = schedules
    .filter(({ missed }) => missed > 0)
    .toSorted((a, b) => b.missed - a.missed);
  if (missing.length > 0) yield ticksMissed(name, missing, commandLine);
  const overlapping = schedules
    .filter(({ droppedOverlap }) => droppedOverlap > 0)
    .toSorted((a, b) => b.droppedOverlap - a.droppedOverlap);
  if (overlapping.length > 0) yield runsDropped(name, overlapping);
  const planned = schedules.filter(
    ({ cron, tzdata }) => cron !== undefined && tzdata !== undefined,
  );
  if (new Set(planned.map(({ tzdata }) => tzdata)).size > 1) yield unlike(name, planned);
}

function paused(queue: string, schedules: readonly Schedule[], commandLine: CommandLine): Finding {
  return {
    level: LAWS.paused.level,
    check: "paused-schedule",
    queue,
    what: `${about(schedules)} ${agree(schedules.length, "is", "are")} paused`,
    why: "no tick comes until somebody resumes it, and those before do not come later",
    repair: `see who paused it, and when: ${commandLine("log", queue)}; then: ${commandLine("schedules", "resume", queue, schedules[0]?.name ?? "")}`,
  };
}

function forgotten(queue: string, schedules: readonly Schedule[]): Finding {
  return {
    level: LAWS.unplanned.level,
    check: "unplanned",
    queue,
    what: `Redis has lost when to plan ${about(schedules)}`,
    why: "the key delayline_planning of the queue was deleted, or evicted; when what is placed has come, nothing follows",
    repair:
      "start a process that moves messages of the queue: it puts the key back within half a minute, as an unchanged declaration does; and let Redis evict nothing (maxmemory-policy noeviction)",
  };
}

function undeclared(
  queue: string,
  schedules: readonly Schedule[],
  now: number,
  commandLine: CommandLine,
): Finding {
  return {
    level: LAWS.unplanned.level,
    check: "unplanned",
    queue,
    what: `${about(schedules)} should have been planned ${since(schedules, now)} ago, and ${agree(schedules.length, "needs", "need")} code: a function makes the payload, or an object says when`,
    why: "only a process that has declared such a schedule in this form and version can plan it, and none moves messages of the queue; when what is placed has come, nothing follows",
    repair: `start a process that declares it, with a transfer task; or if it is no longer wanted: ${commandLine("schedules", "remove", queue, schedules[0]?.name ?? "")}`,
  };
}

function incapable(queue: string, schedules: readonly Schedule[], now: number): Finding {
  const isCron = schedules.some(({ cron }) => cron !== undefined);
  return {
    level: LAWS.unplanned.level,
    check: "unplanned",
    queue,
    what: `${about(schedules)} should have been planned ${since(schedules, now)} ago`,
    why: `the processes that move messages of the queue cannot plan ${agree(schedules.length, "it", "them")}: ${isCron ? "the package croner is not installed there, " : ""}their release knows no schedules, or Redis refuses the script; when what is placed has come, nothing follows`,
    repair: `${isCron ? "install croner (npm install croner) in every process that moves messages; " : ""}update them all; their "error" events (SCHEDULE, REDIS) say what is wrong`,
  };
}

/** The schedules of which runs were dropped because of others, the worst first. */
function runsDropped(queue: string, schedules: readonly Schedule[]): Finding {
  const total = schedules.reduce((sum, one) => sum + one.droppedOverlap, 0);
  return {
    level: "notice",
    check: "dropped-runs",
    queue,
    what: `${formatCount(total, "run")} of ${shares(schedules, ({ droppedOverlap }) => droppedOverlap)} ${agree(total, "was", "were")} dropped, ever, while another one was ready or in flight`,
    why: "overlap is skip, and a handler takes longer than the interval, or hangs, or nobody takes what is ready",
    repair:
      "look for how long the oldest message has been ready or in flight (delayline stats); let the handler end sooner, or the schedule come less often",
  };
}

/** The schedules that missed any, the worst first. */
function ticksMissed(
  queue: string,
  schedules: readonly Schedule[],
  commandLine: CommandLine,
): Finding {
  const total = schedules.reduce((sum, one) => sum + one.missed, 0);
  const [worst] = schedules;
  return {
    level: "notice",
    check: "missed-ticks",
    queue,
    what: `${formatCount(total, "tick")} of ${shares(schedules, ({ missed }) => missed)} ${agree(total, "was", "were")} missed, ever`,
    why: "no process moved messages then, or the queue was paused; of late ticks, misfire decides which still come",
    repair: `if the work of that time is still wanted: ${commandLine("schedules", "backfill", queue, worst?.name ?? "", ["--from", "2026-01-31T00:00"], ["--to", "2026-02-01T00:00"])} with the time that was missed`,
  };
}

function unlike(queue: string, schedules: readonly Schedule[]): Finding {
  const versions = [...new Set(schedules.map(({ tzdata }) => tzdata))];
  const all = versions.map((version) => {
    const own = schedules.filter(({ tzdata }) => tzdata === version);
    return `${version} (${about(own)})`;
  });
  return {
    level: "warning",
    check: "tzdata",
    queue,
    what: `processes with different time zone data plan its schedules: ${all.join(", ")}`,
    why: "where a country has changed its clocks between the two, they compute different ticks, and it is chance which process plans",
    repair:
      "run all processes on one release of Node.js; one that uses the system's ICU needs the same data there (process.versions.tz tells)",
  };
}

/** `the schedule "nightly"`, or the first of several by name. */
function about(schedules: readonly Schedule[]): string {
  const [first] = schedules.map(({ name }) => JSON.stringify(name));
  return schedules.length === 1
    ? `schedule ${first}`
    : `${formatCount(schedules.length, "schedule")} (${first}, ...)`;
}

/** As {@link about}; of several the worst, each with its number. They are in that order. */
function shares(schedules: readonly Schedule[], numberOf: (one: Schedule) => number): string {
  if (schedules.length === 1) return about(schedules);
  const worst = schedules
    .slice(0, MOST_NAMED)
    .map((one) => `${JSON.stringify(one.name)} ${numberOf(one)}`);
  const others = schedules.length > MOST_NAMED ? ", ..." : "";
  return `${formatCount(schedules.length, "schedule")} (${worst.join(", ")}${others})`;
}

/** How many schedules a finding names. */
const MOST_NAMED = 5;

function since(schedules: readonly Schedule[], now: number): string {
  return formatDuration(now - Math.min(...schedules.map(({ planAt }) => planAt)));
}
