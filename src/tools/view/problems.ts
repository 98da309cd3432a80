import type { QueueStats } from "../../index.ts";
import { LAWS, problemsOf, type Problem } from "./health.ts";
import type { Severity } from "./severity.ts";
import { escapeControl } from "./text.ts";
import { formatCount, formatDistance, formatDuration } from "./words.js";

// What is wrong with a queue, in the words of every face.

/** A problem of a queue, in words. */
export interface ProblemInWords {
  /** Its law, or `unread` if the numbers could not be read. */
  readonly name: Problem | "unread";
  readonly level: Severity;
  /** What several queues with it have in common. */
  readonly title: string;
  /** How bad it is, for a column of a table. */
  readonly brief: string;
  /** All of it, as a part of a sentence. */
  readonly text: string;
  /** The number that shows it, as the columns of tables are named. */
  readonly column: string | undefined;
  /** The page of the queue that says more. */
  readonly page: string;
}

interface Words {
  readonly title: string;
  readonly brief: (found: QueueStats) => string;
  /** Defaults to `brief`. */
  readonly text?: (found: QueueStats) => string;
  readonly column: string;
  readonly page: string;
}

const WORDS: Readonly<Record<Problem, Words>> = {
  overdue: {
    title: "Overdue, and not moved",
    brief: (found) =>
      `overdue by ${overdueBy(found)}${found.listeners === 0 ? ", no process moves it" : ""}`,
    text: (found) =>
      `${late(found)}: ${found.listeners === 0 ? "no process transfers them" : "they are not being transferred"}`,
    column: "overdue",
    page: "delayed",
  },
  "no-consumer": {
    title: "Ready, but no consumers",
    brief: ({ ready }) => `${formatCount(ready)} ready, no consumer`,
    text: ({ ready }) => `${formatCount(ready, "message")} ready, but no consumers`,
    column: "consumers",
    page: "consumers",
  },
  unplanned: {
    title: "Schedules that nobody plans",
    brief: ({ unplanned }) => `nobody plans ${formatCount(unplanned, "schedule")}`,
    text: ({ unplanned }) =>
      `${formatCount(unplanned, "schedule")} that no process can plan any more`,
    column: "unplanned",
    page: "schedules",
  },
  paused: {
    title: "Paused",
    brief: ({ overdue }) => (overdue > 0 ? `paused, ${formatCount(overdue)} overdue` : "paused"),
    text: (found) => {
      const { overdue, pauseReason } = found;
      const why = pauseReason === undefined ? "" : ` (${escapeControl(pauseReason)})`;
      return `${overdue > 0 ? `${late(found)}: ` : ""}the queue is paused${why}`;
    },
    column: "paused",
    page: "overview",
  },
  "no-transfer": {
    title: "No process will transfer",
    brief: () => "no process moves it",
    text: () => "no process will transfer its messages when they become due",
    column: "listeners",
    page: "overview",
  },
  backlog: {
    title: "Ready for too long",
    brief: ({ oldestReadyAge = NaN }) => `backlog ${formatDuration(oldestReadyAge)}`,
    text: ({ oldestReadyAge = NaN }) =>
      `the oldest ready message has waited for ${formatDuration(oldestReadyAge)}`,
    column: "oldestReadyAge",
    page: "ready",
  },
  "long-in-flight": {
    title: "In flight for too long",
    brief: ({ oldestInFlightAge = NaN }) => `in flight ${formatDuration(oldestInFlightAge)}`,
    text: ({ oldestInFlightAge = NaN }) =>
      `a message has been in flight for ${formatDuration(oldestInFlightAge)}: its handler hangs, or takes long`,
    column: "oldestInFlightAge",
    page: "in-flight",
  },
  quarantine: {
    title: "Quarantine",
    brief: ({ quarantined }) => `${formatCount(quarantined)} quarantined`,
    text: ({ quarantined }) => `${formatCount(quarantined, "unreadable message")} in quarantine`,
    column: "quarantined",
    page: "quarantined",
  },
  "dead-letters": {
    title: "Dead letters",
    brief: ({ dead }) => formatCount(dead, "dead letter"),
    column: "dead",
    page: "dead",
  },
};

function late(found: QueueStats): string {
  return `${formatCount(found.overdue, "message")} overdue, the oldest by ${overdueBy(found)}`;
}

function overdueBy({ nextDeadline = NaN, serverTime }: QueueStats): string {
  return formatDuration(Math.max(0, serverTime - nextDeadline));
}

/** The problems of a queue in words, the worst first. */
export function problemsIn(found: QueueStats): ProblemInWords[] {
  return problemsOf(found).map((name) => {
    const { title, brief, text = brief, column, page } = WORDS[name];
    const { level } = LAWS[name];
    return { name, level, title, brief: brief(found), text: text(found), column, page };
  });
}

/** That the numbers of a queue could not be read, and why. */
export function unread(why: string): ProblemInWords {
  return {
    name: "unread",
    level: "error",
    title: "Could not be read",
    brief: why,
    text: `could not be read: ${why}`,
    column: undefined,
    page: "overview",
  };
}

/** The problem of a queue that no other column shows; if there is none, when its next message is due. */
export function stateOf(found: QueueStats): string {
  const { nextDeadline, serverTime } = found;
  const next = nextDeadline === undefined ? "-" : formatDistance(nextDeadline, serverTime);
  const [worst] = problemsIn(found);
  return worst === undefined || worst.name === "dead-letters" ? next : worst.brief;
}
