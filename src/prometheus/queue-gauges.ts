import type { QueueNumbers, QueueStats } from "../observe/queue-stats.ts";
import type { Sample } from "./metric.ts";

/** A number of a queue, or of one of its partitions. */
interface QueueGauge {
  /** Without the prefix. */
  readonly name: string;
  readonly help: string;
  /** Undefined: there is none, and nothing is printed. */
  readonly of: (numbers: QueueNumbers, serverTime: number) => number | undefined;
}

/** What Redis tells of each queue, in Prometheus's units. */
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
    help: "For how long the earliest message or retry has been due without being moved; 0: none is due.",
    of: ({ nextDeadline = Infinity }, serverTime) => Math.max(0, serverTime - nextDeadline) / 1000,
  },
  {
    name: "next_deadline_timestamp_seconds",
    help: "The earliest deadline of a message or retry, in seconds since 1970; absent: there is none.",
    of: ({ nextDeadline }) => inSeconds(nextDeadline),
  },
  {
    name: "ready",
    help: "Messages that can be taken.",
    of: ({ ready }) => ready,
  },
  {
    name: "oldest_ready_age_seconds",
    help: "For how long the oldest ready message of a reliable queue has been ready; 0: none is.",
    of: ({ oldestReadyAge, consumers }) =>
      // Of a plain queue nobody knows.
      inSeconds(oldestReadyAge) ?? (consumers === undefined ? undefined : 0),
  },
  {
    name: "in_flight",
    help: "Messages of a reliable queue that are in the hands of consumers.",
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
    help: "Messages that nobody could read.",
    of: ({ quarantined }) => quarantined,
  },
  {
    name: "consumers",
    help: "Consumers that the groups of a reliable queue know.",
    of: ({ consumers }) => consumers,
  },
  {
    name: "listeners",
    help: "Processes that hear the queue's wake-ups: those that move its messages, and those that take.",
    of: ({ listeners }) => listeners,
  },
];

/** Of the whole queue only. */
export const PAUSED = {
  name: "paused",
  help: "Whether the queue is paused (1), or not (0).",
  of: ({ isPaused }: QueueStats) => (isPaused ? 1 : 0),
} as const;

/** The samples of a gauge: one of an ordinary queue, and one of each partition. */
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
