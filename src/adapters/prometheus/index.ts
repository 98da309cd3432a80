/**
 * `delayline/prometheus`: queues as metrics in a registry of prom-client.
 *
 * @module delayline/prometheus
 */
export { collectMetrics, type MetricsCollection } from "./collect-metrics.ts";
export type { CollectMetricsOptions, MetricsRegistry } from "./collect-metrics-options.ts";
