// @ts-check
import { duration, many } from "./format.js";

// The problems of a queue, in words. The server decides what is one. Pages show a number in red exactly if a problem
// names its column.

const late = (row) =>
  `${many(row.overdue, "message")} overdue, the oldest by ${duration(row.overdueBy)}`;

/** The words of a problem, the column of its number, and the page of the queue with more details. */
const WORDS = {
  overdue: (row) => {
    const why =
      row.listeners === 0 ? "no process transfers them" : "they are not being transferred";
    return { column: "overdue", text: `${late(row)}: ${why}` };
  },
  "no-consumer": (row) => ({
    column: "consumers",
    text: `${many(row.ready, "message")} ready, but no consumers`,
    page: "consumers",
  }),
  paused: (row) =>
    row.overdue > 0
      ? { column: "overdue", text: `${late(row)}: the queue is paused` }
      : { column: "paused", text: "the queue is paused" },
  "no-transfer": () => ({
    column: "listeners",
    text: "no process will transfer its messages when they become due",
  }),
  backlog: (row) => ({
    column: "oldestReadyAge",
    text: `the oldest ready message has waited for ${duration(row.oldestReadyAge)}`,
    page: "consumers",
  }),
  "long-in-flight": (row) => ({
    column: "oldestInFlightAge",
    text: `a message has been in flight for ${duration(row.oldestInFlightAge)}: its handler hangs, or takes long`,
    page: "consumers",
  }),
  quarantine: (row) => ({
    column: "quarantined",
    text: `${many(row.quarantined, "unreadable message")} in quarantine`,
    page: "quarantine",
  }),
  "dead-letters": (row) => ({
    column: "dead",
    text: many(row.dead, "dead letter"),
    page: "dead",
  }),
};

/** The problems of a row, as `{ text, column, page }`, the worst first. */
export function problemsOf(row) {
  if (row.error !== undefined) return [{ text: `could not be read: ${row.error}` }];
  return row.problems.map((name) => ({ page: "overview", ...WORDS[name](row) }));
}

/** Sorts rows: those with problems first, then by name. */
export function byUrgency(rows) {
  return rows.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

function rank(row) {
  return problemsOf(row).length > 0 ? 0 : 1;
}
