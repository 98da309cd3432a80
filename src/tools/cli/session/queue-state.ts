import type { QueueStats } from "../../../index.ts";
import { problemsOf, type Problem } from "../../view/health.ts";
import { escapeControl } from "../../view/text.ts";
import { formatDistance, formatDuration } from "./format-time.ts";
import { formatCount } from "./output.ts";

/** The problem of a queue that no other column shows; if there is none, when its next message is due. */
export function stateOf(found: QueueStats): string {
  const { nextDeadline, serverTime } = found;
  const next = nextDeadline === undefined ? "-" : formatDistance(nextDeadline, serverTime);
  const [worst] = problemsOf(found);
  if (worst === undefined || worst === "dead-letters") return next;
  // A reason would be wider than the table.
  return PROBLEM_WORDS[worst]({ ...found, pauseReason: undefined });
}

/** What the numbers of a queue show, and for how long it has lasted. */
export const PROBLEM_WORDS: Readonly<Record<Problem, (found: QueueStats) => string>> = {
  overdue: ({ nextDeadline = NaN, serverTime, listeners }) =>
    `overdue by ${formatDuration(serverTime - nextDeadline)}${listeners === 0 ? ", no process moves it" : ""}`,
  "no-consumer": ({ ready }) => `${formatCount(ready)} ready, no consumer`,
  unplanned: ({ unplanned }) => `nobody plans ${formatCount(unplanned, "schedule")}`,
  paused: ({ pauseReason }) =>
    pauseReason === undefined ? "paused" : `paused (${escapeControl(pauseReason)})`,
  "no-transfer": () => "no process moves it",
  backlog: ({ oldestReadyAge = NaN }) => `backlog ${formatDuration(oldestReadyAge)}`,
  "long-in-flight": ({ oldestInFlightAge = NaN }) =>
    `in flight ${formatDuration(oldestInFlightAge)}`,
  quarantine: ({ quarantined }) => `${formatCount(quarantined)} quarantined`,
  "dead-letters": ({ dead }) => formatCount(dead, "dead letter"),
};
