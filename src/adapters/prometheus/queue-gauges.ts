import type { QueueNumbers, QueueStats } from "../../observe/queue-stats.ts";
import type { Sample } from "./metric.ts";

/** A number of a queue, or of one of its partitions. */
interface QueueGauge {
  /** Without the prefix. */
  readonly name: string;
  readonly help: string;
  /** Undefined if there is no value; the sample is then left out. */
  readonly of: (numbers: QueueNumbers, serverTime: number) => number | undefined;
}

/** The gauges of each queue, read from Redis, in Prometheus's units. */
export const QUEUE_GAUGES: readonly QueueGauge[] = [
  {
    name: "delayed",
    help: "Messages that wait for their deadline, or are due and not moved yet.",
    of: ({ delayed }) => delayed,
  },
  {
    name: "overdue",
    help: "Messages and retries that are due and not moved yet.",
    of: ({ overdue }) => overdue,
  },
  {
    name: "overdue_seconds",
    help: "How long the earliest message or retry has been due without being moved; 0 if none is due.",
    of: ({ nextDeadline = Infinity }, serverTime) => Math.max(0, serverTime - nextDeadline) / 1000,
  },
  {
    name: "next_deadline_timestamp_seconds",
    help: "The earliest deadline of a message or retry, in seconds since 1970; absent if there is none.",
    of: ({ nextDeadline }) => inSeconds(nextDeadline),
  },
  {
    name: "ready",
    help: "Messages that can be taken.",
    of: ({ ready }) => ready,
  },
  {
    name: "oldest_ready_age_seconds",
    help: "How long the oldest ready message of a reliable queue has been ready; 0 if none is.",
    of: ({ oldestReadyAge, consumers }) =>
      // A plain queue stores no times, and has no consumers.
      inSeconds(oldestReadyAge) ?? (consumers === undefined ? undefined : 0),
  },
  {
    name: "in_flight",
    help: "Messages of a reliable queue that consumers hold.",
    of: ({ inFlight }) => inFlight,
  },
  {
    name: "retries",
    help: "Messages of a reliable queue that wait for their next attempt.",
    of: ({ retries }) => retries,
  },
  {
    name: "dead",
    help: "Dead letters.",
    of: ({ dead }) => dead,
  },
  {
    name: "quarantined",
    help: "Unreadable messages.",
    of: ({ quarantined }) => quarantined,
  },
  {
    name: "consumers",
    help: "Consumers in the groups of a reliable queue.",
    of: ({ consumers }) => consumers,
  },
  {
    name: "listeners",
    help: "Processes that are subscribed to the queue's wake-ups, because they move or take its messages.",
    of: ({ listeners }) => listeners,
  },
];

/** A gauge of the whole queue, without partitions. */
export const PAUSED = {
  name: "paused",
  help: "Whether the queue is paused (1), or not (0).",
  of: ({ isPaused }: QueueStats) => (isPaused ? 1 : 0),
} as const;

/** The samples of a gauge: one for an ordinary queue, and one for each partition. */
export function samplesOf(
  { of }: Pick<QueueGauge, "of">,
  all: ReadonlyMap<string, QueueStats>,
): Sample[] {
  return Array.from(all).flatMap(([queue, stats]) => {
    const { perPartition, serverTime } = stats;
    const parts =
      perPartition.length === 0
        ? [{ labels: { queue }, numbers: stats }]
        : perPartition.map((numbers) => ({
            labels: { queue, partition: String(numbers.partition) },
            numbers,
          }));
    return parts.flatMap(({ labels, numbers }) => {
      const value = of(numbers, serverTime);
      return value === undefined ? [] : [{ labels, value }];
    });
  });
}

function inSeconds(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : milliseconds / 1000;
}
