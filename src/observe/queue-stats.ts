import type { QueueCounts } from "../lua/queue/stats.ts";

/** Numbers of a queue, or of one of its partitions, as Redis tells them. */
export interface QueueNumbers extends QueueCounts {
  /**
   * Consumers that the groups of a reliable queue know, the dead among them until they are struck out; undefined of a plain
   * queue: Redis does not tell who waits for a LIST. Of a queue in partitions the most that one of them has: a process may be a
   * consumer of each. If it is consumed exclusively each has one, however many processes there are; see `perPartition`.
   */
  readonly consumers: number | undefined;
  /**
   * Processes that hear the queue's wake-ups, which are those that move its messages, and those that only take, to learn of a
   * pause. Undefined on a Cluster, where no node knows it alone.
   */
  readonly listeners: number | undefined;
}

/** The numbers of one partition. */
export interface PartitionStats extends QueueNumbers {
  /** Its number; -1: the ordinary queue, while it is taken in. */
  readonly partition: number;
}

/** What is in a queue now. */
export interface QueueStats extends QueueNumbers {
  /** Whether messages are acknowledged. A queue is reliable as soon as its stream exists. */
  readonly kind: "plain" | "reliable";
  readonly isPaused: boolean;
  /** The server's clock when it was asked (epoch ms). */
  readonly serverTime: number;
  /** Of a queue in partitions; empty otherwise. */
  readonly perPartition: readonly PartitionStats[];
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}

/** The numbers of a queue that is in several places. */
export function mergeStats(all: readonly QueueStats[]): Omit<QueueStats, "perPartition"> {
  const sum = (count: (one: QueueStats) => number) => total(all.map(count));
  const known = (value: (one: QueueStats) => number | undefined) =>
    all.map(value).filter((one) => one !== undefined);
  const [deadlines, ages] = [known((one) => one.nextDeadline), known((one) => one.oldestReadyAge)];
  const streams = all.filter(({ kind }) => kind === "reliable");
  // A sum without one that does not tell would fall, and look like throughput when it is back. Without a stream nothing was.
  const sumOfAll = (count: (one: QueueStats) => number | undefined) =>
    streams.length > 0 && streams.every((one) => count(one) !== undefined)
      ? total(streams.map((one) => count(one) ?? 0))
      : undefined;
  const [consumers, listeners] = [known((one) => one.consumers), known((one) => one.listeners)];
  return {
    kind: all.some(({ kind }) => kind === "reliable") ? "reliable" : "plain",
    isPaused: all.some(({ isPaused }) => isPaused),
    serverTime: Math.max(...all.map(({ serverTime }) => serverTime)),
    delayed: sum(({ delayed }) => delayed),
    overdue: sum(({ overdue }) => overdue),
    ready: sum(({ ready }) => ready),
    inFlight: sum(({ inFlight }) => inFlight),
    retries: sum(({ retries }) => retries),
    dead: sum(({ dead }) => dead),
    quarantined: sum(({ quarantined }) => quarantined),
    nextDeadline: deadlines.length > 0 ? Math.min(...deadlines) : undefined,
    oldestReadyAge: ages.length > 0 ? Math.max(...ages) : undefined,
    // One process may be a consumer of each partition.
    consumers: consumers.length > 0 ? Math.max(...consumers) : undefined,
    listeners: listeners.length > 0 ? Math.min(...listeners) : undefined,
    readied: sumOfAll(({ readied }) => readied),
    finished: sumOfAll(({ finished }) => finished),
  };
}
