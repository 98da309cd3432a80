// @ts-check
import { count, duration, isKnown } from "./format.js";
import { STATE_OF_NUMBER } from "./states.js";
import { NUMBERS } from "./tables.js";

/** What the numbers of a queue are called. */
export const LABELS = Object.fromEntries(
  Object.entries(NUMBERS).map(([name, { label }]) => [
    name,
    label.charAt(0).toUpperCase() + label.slice(1),
  ]),
);

/** The column of a table for one number of a queue or a partition; see parts/table.js. */
export function numberColumn(name, more = {}) {
  const write = NUMBERS[name].unit === "duration" ? duration : count;
  return {
    id: name,
    label: LABELS[name],
    isNumber: true,
    state: STATE_OF_NUMBER[name],
    cell: (row) => write(row[name]),
    sortBy: (row) => row[name] ?? -1,
    isNone: (row) => !isKnown(row[name]) || row[name] === 0,
    ...more,
  };
}
