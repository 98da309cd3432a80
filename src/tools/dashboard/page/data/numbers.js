// @ts-check

/** What the numbers of a queue are called: as in src/observe/queue-gauges.ts. */
export const LABELS = {
  delayed: "Delayed",
  overdue: "Overdue",
  ready: "Ready",
  inFlight: "In flight",
  retries: "Retries",
  dead: "Dead",
  quarantined: "Quarantined",
  nextDeadline: "Next due",
  oldestReadyAge: "Oldest ready",
  oldestInFlightAge: "Oldest in flight",
  consumers: "Consumers",
  listeners: "Listeners",
};

/** The columns of some numbers in a table. */
export function numberColumns(...names) {
  return names.map((name) => ({ label: LABELS[name], isNumber: true }));
}
