import type { QueueCounters } from "../../observe/counters.ts";
import type { HistogramSnapshot } from "../../observe/histogram.ts";
import type { Sample } from "./metric.ts";

type Counts = {
  [Name in keyof QueueCounters as QueueCounters[Name] extends number ? Name : never]: number;
};
type Histograms = Omit<QueueCounters, keyof Counts>;

interface ProcessMetric<Of> {
  /** Without the prefix. */
  readonly name: string;
  readonly help: string;
  readonly of: keyof Of;
}

/** The counters of this process for each queue that it has open. */
export const PROCESS_COUNTERS: readonly ProcessMetric<Counts>[] = [
  { name: "offered_total", help: "Messages that this process has offered.", of: "offered" },
  {
    name: "transferred_total",
    help: "Messages and retries that this process has made ready.",
    of: "transferred",
  },
  { name: "taken_total", help: "Messages that this process has taken.", of: "taken" },
  {
    name: "acknowledged_total",
    help: "Deliveries that this process has acknowledged.",
    of: "acknowledged",
  },
  {
    name: "retried_total",
    help: "Deliveries that failed in this process and whose message is retried.",
    of: "retried",
  },
  {
    name: "reclaimed_total",
    help: "Messages that this process has taken from a dead consumer.",
    of: "reclaimed",
  },
  {
    name: "dead_letters_total",
    help: "Deliveries whose message this process has made a dead letter.",
    of: "dead",
  },
  { name: "cancelled_total", help: "Messages that this process has cancelled.", of: "cancelled" },
  {
    name: "handler_failures_total",
    help: "Handlers of this process that threw or rejected.",
    of: "failed",
  },
];

/** The histograms of this process. */
export const PROCESS_HISTOGRAMS: readonly ProcessMetric<Histograms>[] = [
  {
    name: "system_lateness_seconds",
    help: "From the deadline until this process has moved the message.",
    of: "systemLateness",
  },
  {
    name: "backlog_lateness_seconds",
    help: "From when a message of a reliable queue became ready until this process has taken it.",
    of: "backlogLateness",
  },
  { name: "handling_seconds", help: "How long handlers of this process ran.", of: "handling" },
];

export function countsOf(
  { of }: ProcessMetric<Counts>,
  all: ReadonlyMap<string, QueueCounters>,
): Sample[] {
  return Array.from(all, ([queue, counters]) => ({ labels: { queue }, value: counters[of] }));
}

/** `name` is the metric's name. Empty histograms are left out, since each has more than twenty series. */
export function bucketsOf(
  { of }: ProcessMetric<Histograms>,
  name: string,
  all: ReadonlyMap<string, QueueCounters>,
): Sample[] {
  return Array.from(all).flatMap(([queue, counters]) => {
    const snapshot = counters[of];
    if (snapshot.count === 0) return [];
    return [
      ...cumulative(snapshot).map(([le, value]) => ({
        labels: { queue, le },
        value,
        metricName: `${name}_bucket`,
      })),
      { labels: { queue }, value: snapshot.sum / 1000, metricName: `${name}_sum` },
      { labels: { queue }, value: snapshot.count, metricName: `${name}_count` },
    ];
  });
}

/** For each bound (s), how many values were not above it. */
function cumulative({ bounds, counts, count }: HistogramSnapshot): [string | number, number][] {
  let sum = 0;
  const buckets = bounds.map((bound, i): [number, number] => {
    sum += counts[i] ?? 0;
    return [bound / 1000, sum];
  });
  return [...buckets, ["+Inf", count]];
}
