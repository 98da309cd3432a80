import type { Delayline } from "../client/delayline.ts";
import { checkCollectMetrics, type CollectMetricsOptions } from "./collect-metrics-options.ts";
import { MetricsCollection } from "./metrics-collection.ts";

/**
 * Registers metrics of queues, which are read at each scrape: how many messages are where and how late, from Redis, and what
 * this process has counted. Their labels are `queue` and, of a queue in partitions, `partition`.
 *
 * Queues are looked at only: nothing is moved, taken or opened. A scrape ends within `timeout`, and never rejects.
 *
 * ```ts
 * const metrics = collectMetrics(line, { registry: register, queues: "all" });
 * ```
 *
 * @throws {TypeError | RangeError} if an option is not legal, or the registry has metrics of these names.
 */
export function collectMetrics(line: Delayline, options: CollectMetricsOptions): MetricsCollection {
  return new MetricsCollection(line, checkCollectMetrics(options));
}
