/** What is used of a `Registry` of prom-client. Nothing else of that library is, and it is not loaded. */
export interface MetricsRegistry {
  registerMetric(metric: never): void;
  getSingleMetric(name: string): unknown;
  removeSingleMetric(name: string): void;
}
