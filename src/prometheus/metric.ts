/** One value of a metric. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** The name, where it is not that of the metric: with `_bucket` and the like behind it. */
  readonly metricName?: string;
}

/** What a metric is, and where its values come from. */
export interface MetricDefinition {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter" | "histogram";
  /** Its values now, of which those with a suffix begin with `name`. */
  readonly read: (name: string) => Promise<readonly Sample[]>;
}

/**
 * A metric that is asked for its values when they are wanted, in the form in which a registry of prom-client asks. One that
 * is told each value would have to be emptied at each scrape, while another scrape reads it.
 */
export class Metric {
  /** An OpenMetrics registry takes the `_total` away from that of a counter. */
  name: string;
  readonly help: string;
  readonly type: MetricDefinition["type"];
  /** Workers of a `cluster` read the same Redis, but count their own. */
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
    // A registry adds its own labels.
    const samples = await this.#read(name);
    return { name, help, type, aggregator, values: samples.map((sample) => ({ ...sample })) };
  }

  /** A registry's `resetMetrics`. There is nothing to forget: the values are read. */
  reset(): void {}
}
