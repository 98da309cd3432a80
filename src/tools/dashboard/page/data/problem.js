// @ts-check
import { duration, isKnown, many } from "./format.js";

// The problems of a queue, in words. Pages show a number in red exactly if this module reports its column.

/** How long a due message may wait for its transfer (ms): sweeps come this often. */
const MAX_OVERDUE = 5_000;

/** How long a ready message may wait for a consumer (ms). */
const MAX_READY_AGE = 60_000;

/** The problems of a row, as `{ text, column, page }`. `page` is the page of the queue with more details. */
export function problemsOf(row) {
  if (row.error !== undefined) return [{ text: `could not be read: ${row.error}` }];
  const found = [];
  const add = (column, text, page = "overview") => found.push({ column, text, page });
  const hasNoListeners = row.listeners === 0;

  if (row.overdue > 0 && row.overdueBy >= MAX_OVERDUE) {
    const why = row.isPaused
      ? "the queue is paused"
      : hasNoListeners
        ? "no process transfers them"
        : "they are not being transferred";
    const late = `${many(row.overdue, "message")} overdue, the oldest by ${duration(row.overdueBy)}`;
    add("overdue", `${late}: ${why}`);
  } else if (hasNoListeners && row.delayed + row.retries > 0) {
    add("listeners", "no process will transfer its messages when they become due");
  }
  if (row.ready > 0 && row.consumers === 0) {
    add("consumers", `${many(row.ready, "message")} ready, but no consumers`, "consumers");
  } else if (isKnown(row.oldestReadyAge) && row.oldestReadyAge >= MAX_READY_AGE) {
    const age = duration(row.oldestReadyAge);
    add("oldestReadyAge", `the oldest ready message has waited for ${age}`, "consumers");
  }
  if (row.dead > 0) add("dead", many(row.dead, "dead letter"), "dead");
  if (row.quarantined > 0) {
    add(
      "quarantined",
      `${many(row.quarantined, "unreadable message")} in quarantine`,
      "quarantine",
    );
  }
  return found;
}

/** Sorts rows: those with problems first, then by name. */
export function byUrgency(rows) {
  return rows.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

function rank(row) {
  return problemsOf(row).length > 0 ? 0 : 1;
}
