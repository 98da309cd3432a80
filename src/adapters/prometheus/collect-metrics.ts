import type { Delayline } from "../../client/delayline.ts";
import { checkCollectMetrics, type CollectMetricsOptions } from "./collect-metrics-options.ts";
import { MetricsCollection } from "./metrics-collection.ts";

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
