/** One value of a metric. */
export interface Sample {
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
  readonly read: (name: string) => Promise<readonly Sample[]>;
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
