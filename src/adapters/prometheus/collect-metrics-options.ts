import { checkFunction, checkIterable, checkOptions, checkWhole } from "../../queue/checks.ts";
import { queueKeys } from "../../queue/keys.ts";

/** Options of `collectMetrics`. */
export interface CollectMetricsOptions {
  /** Where the metrics are registered: `register`, or a `Registry`, of prom-client. */
  readonly registry: MetricsRegistry;
  /**
   * The queues whose numbers are read from Redis at each scrape: names, or `"all"` existing queues. They need not be
   * open. The counters of this process are exported for every queue that it has open, whatever is given here. So use
   * `[]` if another process reads the numbers.
   *
   * Each queue costs a script of about 50 us at each scrape, one more if it is not open, and one per partition. `"all"`
   * also reads the names of all keys of the database once a minute: about 300 us of Redis's time per thousand.
   */
  readonly queues: readonly string[] | "all";
  /**
   * Milliseconds, each from 1,000 to a day, for which `delayline_due_soon` says how many messages fall due within: five at
   * most. Each costs a script of some microseconds for each queue at each scrape. Defaults to none.
   */
  readonly dueWithin?: readonly number[];
  /** The prefix of the metrics' names. Defaults to `"delayline_"`, which the dashboard and the alerts expect. */
  readonly prefix?: string;
  /**
   * How long a scrape may wait for Redis, in milliseconds: 1 to 60,000. Queues that have not been read by then are left
   * out and count as errors. It should be shorter than Prometheus's `scrape_timeout`. Defaults to 5,000.
   */
  readonly timeout?: number;
  /**
   * Called with the reason why the numbers of a queue (or, without a name, the list of queues) could not be read.
   * Errors that it throws are ignored. Defaults to doing nothing; `delayline_scrape_errors_total` counts the errors
   * anyway.
   */
  readonly onError?: (error: unknown, queue: string | undefined) => void;
}

const DEFAULTS = {
  dueWithin: [],
  prefix: "delayline_",
  timeout: 5_000,
  onError: () => {},
} as const;

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal. */
export function checkCollectMetrics(
  options: CollectMetricsOptions,
): Required<CollectMetricsOptions> {
  checkOptions("metrics option", options, [
    "registry",
    "queues",
    "dueWithin",
    "prefix",
    "timeout",
    "onError",
  ]);
  const settings = { ...DEFAULTS, ...defined(options) };
  const { registry, queues, prefix, timeout, onError } = settings;
  if (typeof (registry as Partial<MetricsRegistry> | undefined)?.registerMetric !== "function") {
    throw new TypeError(`registry must be a Registry of prom-client, got ${typeof registry}`);
  }
  if (queues !== "all") {
    checkIterable("queues", queues);
    for (const name of queues) queueKeys(name);
  }
  checkIterable("dueWithin", settings.dueWithin);
  const dueWithin = [...new Set(settings.dueWithin)];
  checkWhole("the number of dueWithin", dueWithin.length, 0, 5);
  for (const within of dueWithin) checkWhole("dueWithin", within, 1000, DAY, " ms");
  if (typeof prefix !== "string" || !/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(prefix)) {
    throw new TypeError(
      `prefix must be the beginning of a metric's name, got ${JSON.stringify(prefix)}`,
    );
  }
  checkWhole("timeout", timeout, 1, 60_000);
  checkFunction("onError", onError);
  return { ...settings, dueWithin };
}

const DAY = 86_400_000;

/** The options without those that are undefined. */
function defined<Options extends object>(options: Options): Options {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Options;
}

/** What is used of prom-client's `Registry`. The library itself is never loaded. */
export interface MetricsRegistry {
  registerMetric(metric: never): void;
  getSingleMetric(name: string): unknown;
  removeSingleMetric(name: string): void;
}
