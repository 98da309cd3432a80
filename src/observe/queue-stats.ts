/** Numbers of a queue, or of one of its partitions, as Redis tells them. */
export interface QueueNumbers {
  /** Messages that wait for their deadline, or are due and not moved yet. */
  readonly delayed: number;
  /** Messages and retries that are due, and not moved yet. */
  readonly overdue: number;
  /**
   * Messages that can be taken: in the LIST, or in the stream and in nobody's hands. Several groups count each their own, and
   * then it is approximate: retries that are ready for one group count for the others, too; and of a group that is 100
   * messages or more behind, what it has finished and others have not, where Redis does not tell how far it is behind (before 7.0, and
   * while messages are gone that it has not come to).
   */
  readonly ready: number;
  /** Messages of a reliable queue that are in the hands of consumers, of all groups. */
  readonly inFlight: number;
  /** Messages of a reliable queue that wait for their next attempt. */
  readonly retries: number;
  /** Dead letters of a reliable queue. */
  readonly dead: number;
  /** What nobody could read. */
  readonly quarantined: number;
  /** The earliest deadline of a message or retry (epoch ms), which may be past; undefined if there is none. */
  readonly nextDeadline: number | undefined;
  /**
   * For how many milliseconds the oldest ready message has been ready; undefined if none is, and of a plain queue, whose
   * ready LIST holds payloads and no times.
   */
  readonly oldestReadyAge: number | undefined;
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
  /**
   * How many messages have become ready in the stream of a reliable queue since it was made, each retry counted again. It only
   * grows, until the stream is dropped; two looks tell the throughput. Undefined of a plain queue, which counts nothing;
   * while there are messages that no group has begun to read; now and then with several groups; before Redis 7.0; and of a queue in partitions as
   * long as one that has a stream does not tell.
   */
  readonly readied: number | undefined;
  /**
   * How many of them have left the stream: acknowledged by every group, dead, or waiting for a retry. Otherwise as
   * `readied`.
   */
  readonly finished: number | undefined;
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
