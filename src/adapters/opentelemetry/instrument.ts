import { metrics, trace, type MeterProvider, type TracerProvider } from "@opentelemetry/api";
import { listen } from "./listening.ts";
import { Metrics } from "./metrics.ts";
import { QueueGauges, type ObservedQueue } from "./queue-gauges.ts";
import { Spans } from "./spans.ts";

/** Options of {@link instrument}. */
export interface InstrumentOptions {
  /**
   * Queues whose numbers are observed as gauges: handles, which are iterated once, or a function that is called for
   * each collection. Costs a call of `stats()` per queue and collection. Defaults to none.
   */
  readonly queues?: Iterable<ObservedQueue> | (() => Iterable<ObservedQueue>);
  /** Makes the spans. Defaults to the global one. */
  readonly tracerProvider?: TracerProvider;
  /** Makes the metrics. Defaults to the global one. */
  readonly meterProvider?: MeterProvider;
}

/** Running instrumentation. */
export interface Instrumented extends Disposable {
  /** Stops it. May be called twice. Spans of operations that are still running are never ended. */
  close(): void;
}

/**
 * Records spans and metrics of all clients of this process from now on, whichever copy of the package they come from.
 *
 * Call it once, after the SDK was set up, and before the first offer.
 */
export function instrument(options: InstrumentOptions = {}): Instrumented {
  const { queues = [], tracerProvider = trace, meterProvider = metrics } = options;
  const observed = queuesOf(queues);
  const meter = meterProvider.getMeter(NAME);
  const measured = new Metrics(meter);
  const unlisten = listen(new Spans(tracerProvider.getTracer(NAME)), measured);
  const gauges = new QueueGauges(meter, observed);
  const close = () => {
    unlisten();
    measured.close();
    gauges.close();
  };
  return { close, [Symbol.dispose]: close };
}

/**
 * Returns the queues for each collection. An iterable such as `map.values()` can be iterated only once, so it is
 * copied.
 */
function queuesOf(queues: NonNullable<InstrumentOptions["queues"]>): () => Iterable<ObservedQueue> {
  if (typeof queues === "function") return queues;
  const kept = [...queues];
  return () => kept;
}

/** The name of the instrumentation scope. */
const NAME = "delayline";
