import type { Delayline } from "../../client/delayline.ts";
import { PAUSED } from "../../nouns/numbers.ts";
import {
  checkCollectMetrics,
  type CollectMetricsOptions,
  type MetricsRegistry,
} from "./collect-metrics-options.ts";
import {
  bucketsOf,
  countsOf,
  GAUGES,
  Metric,
  PROCESS_COUNTERS,
  PROCESS_HISTOGRAMS,
  samplesOf,
  type MetricDefinition,
  type MetricSample,
} from "./metrics.ts";
import { Scraper } from "./scraper.ts";

/**
 * Registers metrics of queues, which are read at each scrape: numbers and lateness from Redis, and the counters of this
 * process. Their labels are `queue` and, for a partitioned queue, `partition`.
 *
 * Reading moves, takes and opens nothing. A scrape ends within `timeout`, and never rejects.
 *
 * ```ts
 * const metrics = collectMetrics(line, { registry: register, queues: "all" });
 * ```
 *
 * @throws {TypeError | RangeError} if an option is not legal, or the registry already has metrics of these names.
 */
export function collectMetrics(line: Delayline, options: CollectMetricsOptions): MetricsCollection {
  return new MetricsCollection(line, checkCollectMetrics(options));
}

/** The metrics of a client's queues in a registry. */
export class MetricsCollection implements AsyncDisposable {
  readonly #registry: MetricsRegistry;
  readonly #scraper: Scraper;
  readonly #names: readonly string[];
  #closing: Promise<void> | undefined;

  /** @internal Use `collectMetrics`. */
  constructor(line: Delayline, options: Required<CollectMetricsOptions>) {
    const { registry, prefix } = options;
    this.#registry = registry;
    this.#scraper = new Scraper(line, options);
    const soon = options.dueWithin.length > 0 ? [dueSoonOf(this.#scraper)] : [];
    const definitions = [...definitionsOf(this.#scraper), ...soon].map((definition) => ({
      ...definition,
      name: prefix + definition.name,
    }));
    this.#names = definitions.map(({ name }) => name);
    const taken = this.#names.find((name) => registry.getSingleMetric(name) !== undefined);
    if (taken !== undefined) {
      throw new TypeError(
        `cannot collect metrics: the registry already has ${taken}; close the other collection, or set another prefix`,
      );
    }
    for (const definition of definitions) registry.registerMetric(new Metric(definition) as never);
  }

  /**
   * Removes the metrics from the registry, and ends a scrape that is under way with the numbers read so far. The client
   * stays open. May be called twice.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    for (const name of this.#names) this.#registry.removeSingleMetric(name);
    await this.#scraper.close();
  }
}

function definitionsOf(scraper: Scraper): MetricDefinition[] {
  const errorsOf = (): MetricSample[] =>
    Array.from(scraper.errors, ([queue, value]) => ({
      labels: queue === undefined ? {} : { queue },
      value,
    }));
  return [
    ...GAUGES.map((gauge) => ({
      ...gauge,
      type: "gauge" as const,
      read: async () => samplesOf(gauge, await scraper.read()),
    })),
    {
      name: "paused",
      help: PAUSED.help,
      type: "gauge",
      read: async () =>
        Array.from(await scraper.read(), ([queue, stats]) => ({
          labels: { queue },
          value: PAUSED.of(stats),
        })),
    },
    ...PROCESS_COUNTERS.map((counter) => ({
      ...counter,
      type: "counter" as const,
      read: () => Promise.resolve(countsOf(counter, scraper.counters)),
    })),
    ...PROCESS_HISTOGRAMS.map((histogram) => ({
      ...histogram,
      type: "histogram" as const,
      read: (name: string) => Promise.resolve(bucketsOf(histogram, name, scraper.counters)),
    })),
    {
      name: "scrape_errors_total",
      help: "Failed readings of a queue's numbers, or without a label of the list of queues.",
      type: "counter",
      read: async () => {
        await scraper.read();
        return errorsOf();
      },
    },
  ];
}

/** How many messages fall due soon: to scale by what is coming. */
function dueSoonOf(scraper: Scraper): MetricDefinition {
  return {
    name: "due_soon",
    help: "Messages and retries that are due and not ready, or fall due within so many seconds.",
    type: "gauge",
    read: async () =>
      Array.from(await scraper.read()).flatMap(([queue, { dueSoon }]) =>
        dueSoon.map(({ within, count }) => ({
          labels: { queue, within: within / 1000 },
          value: count,
        })),
      ),
  };
}
