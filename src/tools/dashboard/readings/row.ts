import type { QueueNumbers, QueueStats } from "../../../observe/queue-stats.ts";

/** The numbers of one queue, as the list of queues shows them. */
export interface Row extends Omit<QueueNumbers, "nextDeadline"> {
  readonly name: string;
  readonly kind: QueueStats["kind"];
  /** How many partitions it has; 0 for an ordinary queue. */
  readonly partitions: number;
  readonly isPaused: boolean;
  readonly nextDeadline: number | undefined;
  /** How long the most overdue message has been due (ms); 0 if no message is overdue. */
  readonly overdueBy: number;
  /** Why the numbers could not be read. If set, they are 0 or undefined. */
  readonly error?: string;
}

/** The numbers and the place of one partition. */
export interface PartitionRow extends QueueNumbers {
  readonly partition: number;
  readonly name: string | undefined;
  readonly node: string | undefined;
  readonly holder: string | undefined;
}

/** The numbers of one queue, with those of its partitions. */
export interface QueueRow extends Row {
  readonly perPartition: readonly PartitionRow[];
}

/** The row of a queue with these numbers. */
export function rowOf(name: string, partitions: number, stats: QueueStats): Row {
  const { perPartition: _, serverTime, ...numbers } = stats;
  const { nextDeadline } = stats;
  const late = nextDeadline === undefined ? 0 : Math.max(0, Math.floor(serverTime - nextDeadline));
  return { name, partitions, ...numbers, overdueBy: stats.overdue > 0 ? late : 0 };
}

/** The row of a queue whose numbers could not be read. */
export function brokenRow(name: string, error: string): Row {
  return { ...EMPTY, name, error };
}

const EMPTY: Omit<Row, "name"> = {
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
