import type { QueueCounters } from "../../observe/counters.ts";
import type { HistogramSnapshot } from "../../observe/histogram.ts";
import { SHOWN, valueOf, type QueueNumbers, type Unit } from "../../nouns/numbers.ts";
import type { QueueStats } from "../../observe/queue-stats.ts";

/** One value of a metric. */
export interface MetricSample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** The name, if it differs from the metric's: with a suffix such as `_bucket`. */
  readonly metricName?: string;
}

/** A metric's name, help, type, and the source of its values. */
export interface MetricDefinition {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter" | "histogram";
  /** Reads the current values. Names of samples with a suffix begin with `name`. */
  readonly read: (name: string) => Promise<readonly MetricSample[]>;
}

/**
 * A metric that a registry of prom-client asks for its values at each scrape. A metric of prom-client itself stores
 * values, and would have to be emptied at each scrape, while another scrape may be reading it.
 */
export class Metric {
  /** Not readonly: an OpenMetrics registry removes the `_total` of a counter. */
  name: string;
  readonly help: string;
  readonly type: MetricDefinition["type"];
  /** Workers of a `cluster` read the same gauges from Redis, but have their own counters. */
  readonly aggregator: "max" | "sum";
  readonly #read: MetricDefinition["read"];

  constructor({ name, help, type, read }: MetricDefinition) {
    this.name = name;
    this.help = help;
    this.type = type;
    this.aggregator = type === "gauge" ? "max" : "sum";
    this.#read = read;
  }

  /** Called at each scrape. */
  async get(): Promise<object> {
    const { name, help, type, aggregator } = this;
    // Copies, since a registry adds its own labels.
    const samples = await this.#read(name);
    return { name, help, type, aggregator, values: samples.map((sample) => ({ ...sample })) };
  }

  /** Called by a registry's `resetMetrics`. No values are stored here. */
  reset(): void {}
}

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
  {
    name: "drops_total",
    help: "Due messages that this process dropped because of their onlyIf or deliverWithin.",
    of: "dropped",
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
    name: "revoked_total",
    help: "Messages of a reliable queue that this process has revoked.",
    of: "revoked",
  },
  {
    name: "handler_failures_total",
    help: "Handlers of this process that threw or rejected, or were given up.",
    of: "failed",
  },
  {
    name: "handler_timeouts_total",
    help: "Handlers of this process that ran for their timeLimit.",
    of: "timedOut",
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
    name: "waited_seconds",
    help: "How long messages of a queue with a rate had waited for their turn when this process moved them.",
    of: "waited",
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
): MetricSample[] {
  return Array.from(all, ([queue, counters]) => ({ labels: { queue }, value: counters[of] }));
}

/** `name` is the metric's name. Empty histograms are left out, since each has more than twenty series. */
export function bucketsOf(
  { of }: ProcessMetric<Histograms>,
  name: string,
  all: ReadonlyMap<string, QueueCounters>,
): MetricSample[] {
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

/** A gauge of each queue or partition, in Prometheus's units. */
interface GaugeDefinition {
  /** Without the prefix. */
  readonly name: string;
  readonly help: string;
  readonly of: (numbers: QueueNumbers, serverTime: number) => number | undefined;
}

/** What Prometheus puts behind the name of a time, which it measures in seconds. */
const SUFFIXES: Readonly<Partial<Record<Unit, string>>> = {
  duration: "_seconds",
  instant: "_timestamp_seconds",
};

/** The gauges of each queue, read from Redis. */
export const GAUGES = SHOWN.map(({ name, unit, help }): GaugeDefinition => {
  const suffix = SUFFIXES[unit];
  return {
    name: snakeCase(name.replace(/By$/, "")) + (suffix ?? ""),
    help,
    of: (numbers, serverTime) => {
      // A plain queue, which has no consumers, stores no times. In a reliable one nothing has waited.
      const none = unit === "duration" && numbers.consumers !== undefined ? 0 : undefined;
      const value = valueOf(name, numbers, serverTime) ?? none;
      return value === undefined || suffix === undefined ? value : value / 1000;
    },
  };
});

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The samples of a gauge: one for an ordinary queue, and one for each partition. */
export function samplesOf(
  { of }: Pick<GaugeDefinition, "of">,
  all: ReadonlyMap<string, QueueStats>,
): MetricSample[] {
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
