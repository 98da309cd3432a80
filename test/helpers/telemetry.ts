import {
  context,
  propagation,
  trace,
  TraceFlags,
  type Attributes,
  type TextMapPropagator,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { onTestFinished } from "vitest";
import { instrument, type InstrumentOptions } from "../../src/adapters/opentelemetry/index.ts";

/** A point of a metric. */
interface Point {
  readonly attributes: Attributes;
  /** A number, or a histogram. */
  readonly value: number | { readonly count: number; readonly sum?: number };
}

/** Further settings of the SDK. */
interface TelemetrySetup {
  /** Defaults to one that carries `traceparent`. */
  readonly propagator?: TextMapPropagator;
  readonly processors?: readonly SpanProcessor[];
}

/** The real SDK with our instrumentation; it records spans and metrics. Ends with the test. */
export class Telemetry {
  readonly tracerProvider: BasicTracerProvider;
  readonly #spans = new InMemorySpanExporter();
  readonly #points = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #meterProvider: MeterProvider;

  constructor(
    options: Pick<InstrumentOptions, "queues"> = {},
    { propagator = w3c, processors = [] }: TelemetrySetup = {},
  ) {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(propagator);
    const processor = new SimpleSpanProcessor(this.#spans);
    this.tracerProvider = new BasicTracerProvider({ spanProcessors: [processor, ...processors] });
    const reader = new PeriodicExportingMetricReader({ exporter: this.#points });
    this.#meterProvider = new MeterProvider({ readers: [reader] });
    const { tracerProvider } = this;
    const instrumented = instrument({
      ...options,
      tracerProvider,
      meterProvider: this.#meterProvider,
    });
    onTestFinished(async () => {
      instrumented.close();
      context.disable();
      propagation.disable();
      await Promise.all([this.tracerProvider.shutdown(), this.#meterProvider.shutdown()]);
    });
  }

  /** The ended spans of this name. */
  named(name: string): ReadableSpan[] {
    return this.#spans.getFinishedSpans().filter((span) => span.name === name);
  }

  /** The names of the ended spans, in the order in which they ended. */
  get names(): string[] {
    return this.#spans.getFinishedSpans().map(({ name }) => name);
  }

  /** The current points of a metric. */
  async points(metric: string): Promise<readonly Point[]> {
    this.#points.reset();
    await this.#meterProvider.forceFlush();
    const metrics = this.#points
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics)
      .flatMap((scope) => scope.metrics);
    const found = metrics.find(({ descriptor }) => descriptor.name === metric);
    return found?.dataPoints ?? [];
  }
}

/** Carries `traceparent` with messages, as in the W3C's Trace Context. */
const w3c: TextMapPropagator = {
  inject: (from, carrier, setter) => {
    const span = trace.getSpanContext(from);
    if (span === undefined) return;
    setter.set(carrier, "traceparent", `00-${span.traceId}-${span.spanId}-01`);
  },
  extract: (into, carrier, getter) => {
    const [, traceId, spanId] = String(getter.get(carrier, "traceparent")).split("-");
    if (traceId === undefined || spanId === undefined) return into;
    const span = { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
    return trace.setSpanContext(into, span);
  },
  fields: () => ["traceparent"],
};
