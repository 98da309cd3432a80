import type { QueueNumbers, QueueStats } from "../../observe/queue-stats.ts";

/** One queue at a glance. What is undefined is null when it is sent. */
export interface Row extends Omit<QueueNumbers, "nextDeadline"> {
  readonly name: string;
  readonly kind: QueueStats["kind"];
  /** How many partitions it has; 0: it is an ordinary queue. */
  readonly partitions: number;
  readonly isPaused: boolean;
  readonly nextDeadline: number | undefined;
  /** For how many milliseconds the most overdue message has been due; 0 if none is. */
  readonly overdueBy: number;
  /** Why the numbers are not known; then all of them are 0. */
  readonly error?: string;
}

/** A partition of a queue, as the page shows it. */
export interface PartitionRow extends QueueNumbers {
  readonly partition: number;
  readonly name: string | undefined;
  readonly node: string | undefined;
  readonly holder: string | undefined;
}

/** One queue, with its partitions. */
export interface QueueRow extends Row {
  readonly perPartition: readonly PartitionRow[];
}

export function rowOf(name: string, partitions: number, stats: QueueStats): Row {
  const { perPartition: _, serverTime, ...numbers } = stats;
  const { nextDeadline } = stats;
  const late = nextDeadline === undefined ? 0 : Math.max(0, Math.floor(serverTime - nextDeadline));
  return { name, partitions, ...numbers, overdueBy: stats.overdue > 0 ? late : 0 };
}

/** The row of a queue whose numbers could not be read. */
export function brokenRow(name: string, error: string): Row {
  return { ...NOTHING, name, error };
}

const NOTHING: Omit<Row, "name"> = {
  kind: "plain",
  partitions: 0,
  isPaused: false,
  delayed: 0,
  overdue: 0,
  overdueBy: 0,
  ready: 0,
  inFlight: 0,
  retries: 0,
  dead: 0,
  quarantined: 0,
  nextDeadline: undefined,
  oldestReadyAge: undefined,
  consumers: undefined,
  listeners: undefined,
  readied: undefined,
  finished: undefined,
};
