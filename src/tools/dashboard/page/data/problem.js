// @ts-check
import { count, duration, many } from "./format.js";

// The problems of queues, in words. The server decides what is one. Views show a number in red exactly if a problem
// names its column.

const late = (row) =>
  `${many(row.overdue, "message")} overdue, the oldest by ${duration(row.overdueBy)}`;

/**
 * Each problem, the worst first:
 * - `level`: "error" or "warning", as in src/observe/health.ts
 * - `title`: what several queues have in common
 * - `brief`: how bad it is for one of them
 * - `text`: all of it for one queue
 * - `column`: the number that shows it
 * - `page`: where the queue says more
 */
const PROBLEMS = {
  overdue: {
    level: "error",
    title: "Overdue, and not moved",
    brief: (row) => `${count(row.overdue)}, by ${duration(row.overdueBy)}`,
    text: (row) =>
      `${late(row)}: ${row.listeners === 0 ? "no process transfers them" : "they are not being transferred"}`,
    column: "overdue",
    page: "delayed",
  },
  "no-consumer": {
    level: "error",
    title: "Ready, but no consumers",
    brief: (row) => count(row.ready),
    text: (row) => `${many(row.ready, "message")} ready, but no consumers`,
    column: "consumers",
    page: "consumers",
  },
  unplanned: {
    level: "error",
    title: "Schedules that nobody plans",
    brief: (row) => count(row.unplanned),
    text: (row) => `${many(row.unplanned, "schedule")} that no process can plan any more`,
    column: "unplanned",
    page: "schedules",
  },
  paused: {
    level: "warning",
    title: "Paused",
    brief: (row) => (row.overdue > 0 ? `${count(row.overdue)} overdue` : ""),
    text: (row) => (row.overdue > 0 ? `${late(row)}: the queue is paused` : "the queue is paused"),
    column: "paused",
    page: "overview",
  },
  "no-transfer": {
    level: "warning",
    title: "No process will transfer",
    brief: (row) => many(row.delayed + row.retries, "message"),
    text: () => "no process will transfer its messages when they become due",
    column: "listeners",
    page: "overview",
  },
  backlog: {
    level: "warning",
    title: "Ready for too long",
    brief: (row) => duration(row.oldestReadyAge),
    text: (row) => `the oldest ready message has waited for ${duration(row.oldestReadyAge)}`,
    column: "oldestReadyAge",
    page: "ready",
  },
  "long-in-flight": {
    level: "warning",
    title: "In flight for too long",
    brief: (row) => duration(row.oldestInFlightAge),
    text: (row) =>
      `a message has been in flight for ${duration(row.oldestInFlightAge)}: its handler hangs, or takes long`,
    column: "oldestInFlightAge",
    page: "in-flight",
  },
  quarantine: {
    level: "warning",
    title: "Quarantine",
    brief: (row) => count(row.quarantined),
    text: (row) => `${many(row.quarantined, "unreadable message")} in quarantine`,
    column: "quarantined",
    page: "quarantined",
  },
  "dead-letters": {
    level: "warning",
    title: "Dead letters",
    brief: (row) => count(row.dead),
    text: (row) => many(row.dead, "dead letter"),
    column: "dead",
    page: "dead",
  },
};

/** That the numbers of a queue could not be read. */
const UNREAD = {
  name: "unread",
  level: "error",
  title: "Could not be read",
  brief: (row) => row.error,
  text: (row) => `could not be read: ${row.error}`,
  page: "overview",
};

/** The problems of rows that were asked for: a table asks for them once per cell. */
const known = new WeakMap();

/** The problems of a row, as `{ name, level, title, brief, text, column, page }`, the worst first. */
export function problemsOf(row) {
  let problems = known.get(row);
  if (problems === undefined) known.set(row, (problems = readProblems(row)));
  return problems;
}

function readProblems(row) {
  const problems =
    row.error !== undefined && row.error !== null
      ? [UNREAD]
      : row.problems.map((name) => ({ name, ...PROBLEMS[name] }));
  return problems.map((one) => ({ ...one, brief: one.brief(row), text: one.text(row) }));
}

/** The problems of rows: one for each kind, `{ name, level, title, page, queues: [{ row, brief }] }`, the worst first. */
export function problemsAmong(rows) {
  const order = ["unread", ...Object.keys(PROBLEMS)];
  const kinds = new Map();
  for (const row of rows) {
    for (const { name, level, title, page, brief } of problemsOf(row)) {
      if (!kinds.has(name)) kinds.set(name, { name, level, title, page, queues: [] });
      kinds.get(name).queues.push({ row, brief });
    }
  }
  return [...kinds.values()].toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
}

/** The numbers of a row that are problems. */
export function problemColumnsOf(row) {
  return new Set(problemsOf(row).map(({ column }) => column));
}

/** Sorts rows: those with errors first, then those with warnings, then by name. */
export function byUrgency(rows) {
  const ranked = rows.map((row) => ({ row, rank: rankOf(row) }));
  ranked.sort((a, b) => a.rank - b.rank || (a.row.name < b.row.name ? -1 : 1));
  return ranked.map(({ row }) => row);
}

function rankOf(row) {
  const levels = problemsOf(row).map(({ level }) => level);
  return levels.includes("error") ? 0 : levels.length > 0 ? 1 : 2;
}
