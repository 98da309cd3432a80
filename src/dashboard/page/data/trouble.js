// @ts-check
import { count, duration, isKnown, many } from "./format.js";

// What is wrong with a queue, in words, the worst first. A number is trouble here exactly where its cell is red.

/** From when on a message that was not moved is trouble, in milliseconds: sweeps come this often. */
const LATE = 5_000;

/** From when on ready messages that nobody takes are trouble, in milliseconds. */
const WAITING = 60_000;

/**
 * The troubles of a row: `{ text, column, page }`, where `page` is the page of the queue that helps.
 */
export function troublesOf(row) {
  if (row.error !== undefined) return [{ text: `cannot be read: ${row.error}` }];
  const found = [];
  const add = (column, text, page = "overview") => found.push({ column, text, page });
  const deaf = row.listeners === 0;

  if (row.overdue > 0 && row.overdueBy >= LATE) {
    const why = row.isPaused
      ? "the queue is paused"
      : deaf
        ? "no process that moves its messages is there"
        : "nobody moves them";
    const late = `${many(row.overdue, "message")} overdue, the first by ${duration(row.overdueBy)}`;
    add("overdue", `${late}: ${why}`);
  } else if (deaf && row.delayed + row.retries > 0) {
    add("listeners", "no process is there that will move its messages when they are due");
  }
  if (row.ready > 0 && row.consumers === 0) {
    add("consumers", `${many(row.ready, "message")} ready, and no consumer`, "consumers");
  } else if (isKnown(row.oldestReadyAge) && row.oldestReadyAge >= WAITING) {
    const age = duration(row.oldestReadyAge);
    add("oldestReadyAge", `the oldest ready message has waited for ${age}`, "consumers");
  }
  if (row.dead > 0) add("dead", many(row.dead, "dead letter"), "dead");
  if (row.quarantined > 0) {
    add(
      "quarantined",
      `${count(row.quarantined)} in quarantine, which nobody could read`,
      "quarantine",
    );
  }
  return found;
}

/** Rows with trouble first, then by name. */
export function inOrder(rows) {
  return rows.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

function rank(row) {
  return troublesOf(row).length > 0 ? 0 : 1;
}
