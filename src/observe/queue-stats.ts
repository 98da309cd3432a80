import type { QueueCounts } from "../lua/queue/stats.ts";

/** The numbers of a queue, or of one of its partitions. */
export interface QueueNumbers extends QueueCounts {
  /**
   * Consumers in the groups of a reliable queue, including dead ones until they are removed. Undefined for a plain
   * queue: Redis does not reveal who waits for a LIST.
   *
   * For a partitioned queue, the highest number of any partition, since a process may be a consumer of each. If the
   * queue is consumed exclusively, each partition has one, however many processes there are; see `perPartition`.
   */
  readonly consumers: number | undefined;
  /**
   * Processes that are subscribed to the queue's wake-ups: those that move its messages, and those that only take,
   * which hear of a pause this way. Undefined on a Cluster, where no single node knows all of them.
   */
  readonly listeners: number | undefined;
}

/** The numbers of one partition. */
export interface PartitionStats extends QueueNumbers {
  /** The partition's number; -1 for the ordinary queue, while its messages move into partitions. */
  readonly partition: number;
}

/** The numbers of a whole queue. */
export interface QueueStats extends QueueNumbers {
  /** Whether messages are acknowledged. A queue is reliable as long as its stream exists. */
  readonly kind: "plain" | "reliable";
  readonly isPaused: boolean;
  /** Why it is paused, in words, if whoever paused it has said so. */
  readonly pauseReason: string | undefined;
  /** The server's clock when the numbers were read (epoch ms). */
  readonly serverTime: number;
  /** The numbers of each partition; empty for an ordinary queue. */
  readonly perPartition: readonly PartitionStats[];
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}

/** Merges the numbers of a queue's partitions. */
export function mergeStats(all: readonly QueueStats[]): Omit<QueueStats, "perPartition"> {
  const sum = (count: (one: QueueStats) => number) => total(all.map(count));
  const known = <Value>(value: (one: QueueStats) => Value | undefined) =>
    all.map(value).filter((one) => one !== undefined);
  const [deadlines, ages] = [known((one) => one.nextDeadline), known((one) => one.oldestReadyAge)];
  const handledFor = known((one) => one.oldestInFlightAge);
  const streams = all.filter(({ kind }) => kind === "reliable");
  // If one stream's number is unknown, so is the sum: without that stream it would fall, and later seem to jump.
  // Partitions without a stream have added nothing.
  const sumOfAll = (count: (one: QueueStats) => number | undefined) =>
    streams.length > 0 && streams.every((one) => count(one) !== undefined)
      ? total(streams.map((one) => count(one) ?? 0))
      : undefined;
  const [consumers, listeners] = [known((one) => one.consumers), known((one) => one.listeners)];
  return {
    kind: all.some(({ kind }) => kind === "reliable") ? "reliable" : "plain",
    isPaused: all.some(({ isPaused }) => isPaused),
    pauseReason: known((one) => one.pauseReason)[0],
    serverTime: Math.max(...all.map(({ serverTime }) => serverTime)),
    delayed: sum(({ delayed }) => delayed),
    overdue: sum(({ overdue }) => overdue),
    ready: sum(({ ready }) => ready),
    inFlight: sum(({ inFlight }) => inFlight),
    retries: sum(({ retries }) => retries),
    dead: sum(({ dead }) => dead),
    dropped: sum(({ dropped }) => dropped),
    droppedLate: sum(({ droppedLate }) => droppedLate),
    droppedOverlap: sum(({ droppedOverlap }) => droppedOverlap),
    quarantined: sum(({ quarantined }) => quarantined),
    remembered: sum(({ remembered }) => remembered),
    schedules: sum(({ schedules }) => schedules),
    unplanned: sum(({ unplanned }) => unplanned),
    nextDeadline: deadlines.length > 0 ? Math.min(...deadlines) : undefined,
    oldestReadyAge: ages.length > 0 ? Math.max(...ages) : undefined,
    oldestInFlightAge: handledFor.length > 0 ? Math.max(...handledFor) : undefined,
    // A process may be a consumer of several partitions.
    consumers: consumers.length > 0 ? Math.max(...consumers) : undefined,
    listeners: listeners.length > 0 ? Math.min(...listeners) : undefined,
    readied: sumOfAll(({ readied }) => readied),
    finished: sumOfAll(({ finished }) => finished),
  };
}
