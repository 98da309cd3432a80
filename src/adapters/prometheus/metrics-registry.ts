/** The part of prom-client's `Registry` that is used. The library itself is never loaded. */
export interface MetricsRegistry {
  registerMetric(metric: never): void;
  getSingleMetric(name: string): unknown;
  removeSingleMetric(name: string): void;
}
