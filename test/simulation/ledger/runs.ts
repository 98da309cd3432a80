import type { Noted } from "../sim.ts";

/**
 * Judges the runs of schedules, be they ticks or triggered:
 *
 * - **A triggered run comes.** Who clears the queue may take it, and a failover may undo it.
 * - **A run that failed is retried.** The same may end that.
 */
export function judgeRuns(history: readonly Noted[]): string[] {
  const undoneAt = history.findLastIndex(
    ({ event }) => "clears" in event || event["fault"] === "failover",
  );
  return history.slice(undoneAt + 1).flatMap(({ at, event, step }) => {
    const { id, attempt = 0 } = event as { id?: string; attempt?: number };
    const isFollowed = () =>
      history.some(
        ({ event: other, step: then }) =>
          begins(other) &&
          other["id"] === id &&
          (other["attempt"] as number) > attempt &&
          // The answer to who triggers it may come later.
          ("triggers" in event || then >= step),
      );
    if ("triggers" in event && !isFollowed()) return [`lost: run ${id} triggered at ${at} ms`];
    if (event["isFailed"] === true && !isFollowed()) return [`lost: retry of run ${id}`];
    return [];
  });
}

/**
 * Judges a schedule with `overlap: "skip"`: no handler of one tick begins for the first time while that of another one
 * runs, or one that was triggered, or is retried. Retries come always, and what is triggered: if it was moved behind a
 * tick it may begin before it.
 *
 * A change of the number of partitions may leave the former run in another one, and what keeps the lease from being
 * renewed, or Redis from replying, excuses it as well.
 */
export function judgeOverlap(history: readonly Noted[], name: string): string[] {
  return besides(
    history,
    name,
    (event, other) =>
      isFirst(other) &&
      other["tick"] !== event["tick"] &&
      (isFirst(event) || (event["now"] as number) < (other["tick"] as number)),
  );
}

/**
 * Judges a schedule with `overlap: "wait"`: no handler of a run begins while that of another one runs, whatever runs they are,
 * until the schedule is removed.
 */
export function judgeOneInHand(history: readonly Noted[], name: string): string[] {
  const removal = history.findIndex(
    ({ event }) => event["deed"] === "remove" && event["name"] === name,
  );
  const until = removal < 0 ? history : history.slice(0, removal);
  return besides(until, name, (event, other) => begins(other) && !isSameRun(other, event));
}

/** The runs that begin beside others, if `isWrong` says so of the other's event and of theirs. */
function besides(
  history: readonly Noted[],
  name: string,
  isWrong: (event: Noted["event"], other: Noted["event"]) => boolean,
): string[] {
  const isExcused = history.some(
    ({ event }) => "changes" in event || EXCUSES.includes(event["fault"] as string),
  );
  if (isExcused) return [];
  const own = history.filter(({ event }) => event["name"] === name);
  return own.flatMap(({ at, event, process }, i) => {
    if (!begins(event)) return [];
    // A handler whose process has died has no end.
    const end = own.findIndex(
      (other, j) =>
        j > i &&
        "ended" in other.event &&
        other.process === process &&
        isSameRun(other.event, event),
    );
    const during = own.slice(i + 1, Math.max(end, 0));
    const beside = during.find(({ event: other }) => isWrong(event, other));
    if (beside === undefined) return [];
    return [`overlap: tick ${String(beside.event["tick"])} of ${name} beside that of ${at} ms`];
  });
}

/** Faults that keep a lease from being renewed, or Redis from replying, or undo what it was told. */
const EXCUSES: readonly string[] = [
  "failover",
  "stall",
  "silence",
  "delay",
  "trickle",
  "rights",
  "clock-step",
];

function begins(event: Noted["event"]): boolean {
  return "ran" in event || "triggered" in event;
}

/** Whether a tick begins for the first time. */
function isFirst(event: Noted["event"]): boolean {
  return "ran" in event && event["attempt"] === 1;
}

function isSameRun(one: Noted["event"], other: Noted["event"]): boolean {
  return (["id", "tick", "attempt"] as const).every((what) => one[what] === other[what]);
}
