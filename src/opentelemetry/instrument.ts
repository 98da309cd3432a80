import { metrics, trace, type MeterProvider, type TracerProvider } from "@opentelemetry/api";
import { listen } from "./listening.ts";
import { Metrics } from "./metrics.ts";
import { QueueGauges, type ObservedQueue } from "./queue-gauges.ts";
import { Spans } from "./spans.ts";

/** Options of {@link instrument}. */
export interface InstrumentOptions {
  /**
   * Queues whose numbers are observed, as gauges: any of their handles, which are read once, now, or a function that returns
   * them each time. Costs a call of `stats()` for each queue and each collection. Defaults to none.
   */
  readonly queues?: Iterable<ObservedQueue> | (() => Iterable<ObservedQueue>);
  /** Makes the spans. Defaults to the global one. */
  readonly tracerProvider?: TracerProvider;
  /** Makes the metrics. Defaults to the global one. */
  readonly meterProvider?: MeterProvider;
}

/** What {@link instrument} has begun. */
export interface Instrumented extends Disposable {
  /** Ends it; may be called twice. What is under way by now gets no end. */
  close(): void;
}

/**
 * Makes spans and metrics of what all clients of this process do from now on, whichever copy of the package they are
 * from.
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

/** The queues each time. What can be gone through only once, such as `map.values()`, is kept. */
function queuesOf(queues: NonNullable<InstrumentOptions["queues"]>): () => Iterable<ObservedQueue> {
  if (typeof queues === "function") return queues;
  const kept = [...queues];
  return () => kept;
}

/** The name of the instrumentation scope. */
const NAME = "delayline";
