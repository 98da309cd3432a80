import { isError, textField } from "../../values/thrown.ts";
import {
  context,
  metrics,
  trace,
  type Context,
  type MeterProvider,
  type Span,
  type TracerProvider,
} from "@opentelemetry/api";
import {
  handlings,
  offers,
  settlements,
  takes,
  transfers,
  type HandleEvent,
  type OfferEvent,
  type SettleEvent,
  type TakeEvent,
  type TransferEvent,
} from "../../observe/events.ts";
import { Metrics } from "./metrics.ts";
import { QueueGauges, type ObservedQueue } from "./queue-gauges.ts";
import { shielded, OperationSpans } from "./spans.ts";
import { networkTime } from "../../time/runtime.ts";

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
  const unlisten = listen(new OperationSpans(tracerProvider.getTracer(NAME)), measured);
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

/** An operation that is under way. */
interface UnderWay {
  /** `networkTime.now()`. */
  readonly startedAt: number;
  /** Undefined for a take: its span is made once it has returned messages. */
  readonly span: Span | undefined;
  /** The context in which a take began. */
  readonly parent: Context | undefined;
}

/** Records spans and metrics of the events on the diagnostics channels; returns a function that stops this. */
function listen(spans: OperationSpans, recorder: Metrics): () => void {
  // A property of the event instead of a WeakMap: a weak map with as many entries costs the garbage collector a lot.
  const key = Symbol("delayline/opentelemetry");
  const begin = (event: object, span: Span | undefined, parent?: Context) => {
    const underWay: UnderWay = { startedAt: networkTime.now(), span, parent };
    (event as Noted)[key] = underWay;
  };
  /** Undefined if the operation began before we listened. */
  const underWayOf = (event: object): UnderWay | undefined => (event as Noted)[key];

  const listeners = [
    on(offers.start, (event: OfferEvent) => begin(event, spans.offer(event))),
    on(offers.asyncEnd, (event: OfferEvent) => {
      const { startedAt, span } = underWayOf(event) ?? {};
      if (startedAt === undefined || span === undefined) return;
      spans.offered(span, event);
      recorder.ended("offer", event, networkTime.now() - startedAt);
      const stored = storedOf(event);
      if (stored > 0) recorder.sent(event.queue, stored);
      if (stored < event.count) recorder.sent(event.queue, event.count - stored, event.error);
    }),
    on(takes.start, (event: TakeEvent) => begin(event, undefined, context.active())),
    on(takes.asyncEnd, (event: TakeEvent) => {
      const { startedAt, parent } = underWayOf(event) ?? {};
      if (startedAt === undefined || parent === undefined) return;
      const duration = networkTime.now() - startedAt;
      const ended = isWaitCutShort(event.error) ? withoutError(event) : event;
      spans.take(ended, duration, parent);
      recorder.ended("take", ended, duration);
      recorder.consumed("take", ended, ended.messages ?? []);
    }),
    on(handlings.start, (event: HandleEvent) => {
      begin(event, spans.process(event));
      recorder.consumed("process", event, event.messages);
    }),
    on(handlings.asyncEnd, (event: HandleEvent) => {
      const { startedAt, span } = underWayOf(event) ?? {};
      if (startedAt === undefined || span === undefined) return;
      spans.end(span, event);
      recorder.ended("process", event, networkTime.now() - startedAt);
    }),
    on(settlements.start, (event: SettleEvent) => begin(event, spans.settle(event))),
    on(settlements.asyncEnd, (event: SettleEvent) => {
      const { startedAt, span } = underWayOf(event) ?? {};
      if (startedAt === undefined || span === undefined) return;
      spans.settled(span, event);
      recorder.ended(event.operation, event, networkTime.now() - startedAt);
    }),
    on(transfers, (event: TransferEvent) => recorder.transferred(event)),
  ];
  return () => {
    for (const end of listeners) end();
  };
}

/** An event on which a listener has noted an operation. */
type Noted = Record<symbol, UnderWay | undefined>;

interface Channel {
  subscribe(listener: (event: unknown) => void): void;
  unsubscribe(listener: (event: unknown) => void): void;
}

/** Subscribes a listener to a channel; returns a function that unsubscribes it. */
function on(channel: Channel, listener: (event: never) => void): () => void {
  const listening = (event: unknown) => {
    shielded("record an operation", () => listener(event as never));
  };
  channel.subscribe(listening);
  return () => channel.unsubscribe(listening);
}

/**
 * Whether a wait for messages was ended on purpose: the client was closed, or the caller's signal was aborted. An abort
 * with a custom reason cannot be distinguished from an error.
 */
function isWaitCutShort(error: unknown): boolean {
  if (!isError(error)) return false;
  const name = textField(error, "name");
  return textField(error, "code") === "CLOSED" || name === "AbortError" || name === "TimeoutError";
}

/** The event of a failed take, as if that take had returned nothing. */
function withoutError({ queue, group }: TakeEvent): TakeEvent {
  return { queue, group };
}

/** How many messages of an offer Redis has stored. */
function storedOf(event: OfferEvent): number {
  if (!("error" in event)) return event.count;
  // An OfferManyError has a result for each message.
  const { results } = Object(event.error) as { readonly results?: readonly unknown[] };
  return Array.isArray(results) ? results.filter((one) => !isError(one)).length : 0;
}
