// @ts-check
import { count, duration, isKnown } from "./format.js";
import { STATE_OF_NUMBER } from "./states.js";

/** What the numbers of a queue are called: as in src/observe/queue-gauges.ts. */
export const LABELS = {
  delayed: "Delayed",
  overdue: "Overdue",
  ready: "Ready",
  inFlight: "In flight",
  retries: "Retrying",
  dead: "Dead",
  dropped: "Dropped",
  droppedLate: "Dropped late",
  droppedOverlap: "Dropped overlap",
  quarantined: "Quarantined",
  remembered: "Remembered",
  schedules: "Schedules",
  unplanned: "Unplanned",
  nextDeadline: "Next due",
  oldestReadyAge: "Oldest ready",
  oldestInFlightAge: "Oldest in flight",
  consumers: "Consumers",
  listeners: "Listeners",
};

/** The numbers that are durations (ms). */
const DURATIONS = new Set(["oldestReadyAge", "oldestInFlightAge"]);

/** The column of a table for one number of a queue or a partition; see parts/table.js. */
export function numberColumn(name, more = {}) {
  const write = DURATIONS.has(name) ? duration : count;
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
