import {
  context,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Link,
  type Span,
  type Tracer,
} from "@opentelemetry/api";
import type {
  DeliveredMessage,
  HandleEvent,
  OfferEvent,
  SettleEvent,
  TakeEvent,
} from "../observe/events.ts";
import { attributesOf, errorTypeOf } from "./attributes.ts";

/**
 * Makes the spans of what is done with queues.
 *
 * An offer's context goes with its messages, in their headers. Who handles them begins a trace of its own, which is
 * linked to the offer's: hours may lie between.
 */
export class Spans {
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** Begins the span of an offer, and puts its context into the headers of the messages, if they have any. */
  offer({ queue, count, key, headers }: OfferEvent): Span {
    const attributes = attributesOf("offer", { queue });
    const name = `offer ${queue}`;
    const span = this.#tracer.startSpan(name, { kind: SpanKind.PRODUCER, attributes });
    if (count !== 1) span.setAttribute("messaging.batch.message_count", count);
    if (key !== undefined) span.setAttribute("delayline.message.key", key);
    if (headers !== undefined) propagation.inject(trace.setSpan(context.active(), span), headers);
    return span;
  }

  /**
   * Makes the span of a take that has ended, which began at `startTime` (epoch ms) in `parent`. None is made of a take
   * that has brought nothing: whoever polls would make one span after the other.
   */
  take(event: TakeEvent, startTime: number, parent: Context): void {
    const { queue, messages = [] } = event;
    if (messages.length === 0 && event.error === undefined) return;
    const name = `take ${queue}`;
    const attributes = { ...attributesOf("take", event), ...describe(messages) };
    const links = messages.flatMap(linksOf);
    const span = this.#tracer.startSpan(
      name,
      { kind: SpanKind.CONSUMER, attributes, links, startTime },
      parent,
    );
    this.end(span, event);
  }

  /** Begins the span of a handler, and says that the handler has to run in it. */
  process(event: HandleEvent): Span {
    const { queue, messages } = event;
    const attributes = { ...attributesOf("process", event), ...describe(messages) };
    const links = messages.flatMap(linksOf);
    const [only] = messages.length === 1 ? messages : [];
    // What else has come with the message, such as baggage, is there for the handler.
    const base =
      only === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, only.headers);
    const span = this.#tracer.startSpan(
      `process ${queue}`,
      { kind: SpanKind.CONSUMER, attributes, links, root: true },
      base,
    );
    const own = trace.setSpan(base, span);
    const { around } = event;
    event.around = (run) => context.with(own, () => (around === undefined ? run() : around(run)));
    return span;
  }

  /** Begins the span of what is said of a delivery by hand. */
  settle(event: SettleEvent): Span {
    const { queue, operation, message } = event;
    const attributes = { ...attributesOf(operation, event), ...describe([message]) };
    const links = linksOf(message);
    return this.#tracer.startSpan(`${operation} ${queue}`, {
      kind: SpanKind.CLIENT,
      attributes,
      links,
    });
  }

  /** Ends a span. */
  end(span: Span, event: { readonly error?: unknown }): void {
    if ("error" in event) {
      const { error } = event;
      const message = error instanceof Error ? error.message : undefined;
      span.setAttribute("error.type", errorTypeOf(error));
      span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
      if (error instanceof Error) span.recordException(error);
    }
    span.end();
  }
}

/** What spans tell of the messages that they are about. */
function describe(messages: readonly DeliveredMessage[]): Attributes {
  const [first] = messages;
  if (first === undefined || messages.length > 1) {
    return { "messaging.batch.message_count": messages.length };
  }
  // Of a plain queue nothing is known.
  if (first.id === undefined) return {};
  return {
    "messaging.message.id": first.id,
    "delayline.message.attempt": first.attempt,
    ...(first.key !== undefined && { "delayline.message.key": first.key }),
  };
}

/** The link to the span that has offered a message; none if it carries no context. */
function linksOf({ id, headers }: DeliveredMessage): Link[] {
  const offered = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, headers));
  if (offered === undefined || !isSpanContextValid(offered)) return [];
  return [
    id === undefined
      ? { context: offered }
      : { context: offered, attributes: { "messaging.message.id": id } },
  ];
}
