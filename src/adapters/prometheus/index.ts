/**
 * `delayline/prometheus`: queues as metrics in a registry of prom-client.
 *
 * @module
 */
export { collectMetrics } from "./collect-metrics.ts";
export type { CollectMetricsOptions } from "./collect-metrics-options.ts";
export type { MetricsCollection } from "./metrics-collection.ts";
export type { MetricsRegistry } from "./metrics-registry.ts";
