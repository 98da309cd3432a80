import { isError, textField } from "../../values/thrown.ts";
import {
  context,
  diag,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Exception,
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
} from "../../observe/events.ts";
import { attributesOf, errorTypeOf } from "./attributes.ts";

/**
 * The spans of operations on queues.
 *
 * The headers of a message carry the context of its offer. A handler starts a new trace that is linked to the offer's,
 * since hours may lie between them.
 */
export class OperationSpans {
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** Starts the span of an offer, and injects its context into the headers of the messages, if they may have any. */
  offer({ queue, count, key, headers }: OfferEvent): Span {
    const common = attributesOf("offer", { queue });
    const isPlain = count === 1 && key === undefined;
    const attributes = isPlain
      ? common
      : {
          ...common,
          ...(count !== 1 && { "messaging.batch.message_count": count }),
          ...(key !== undefined && { "delayline.message.key": key }),
        };
    const name = `offer ${queue}`;
    const span = this.#tracer.startSpan(name, { kind: SpanKind.PRODUCER, attributes });
    if (headers !== undefined) {
      // If this fails the span stays open: the caller ends it.
      shielded("inject a context", () =>
        propagation.inject(trace.setSpan(context.active(), span), headers),
      );
    }
    return span;
  }

  /** Ends the span of an offer. */
  offered(span: Span, event: OfferEvent): void {
    const { id } = Object(event.result) as { readonly id?: unknown };
    if (typeof id === "string") span.setAttribute("messaging.message.id", id);
    this.end(span, event);
  }

  /**
   * Makes the span of a take that took `duration` milliseconds, in the context `parent`. A take that returned nothing
   * gets no span, or polling would produce an endless series of them.
   */
  take(event: TakeEvent, duration: number, parent: Context): void {
    const { queue, messages = [] } = event;
    if (messages.length === 0 && !("error" in event)) return;
    const options = {
      kind: SpanKind.CONSUMER,
      attributes: withMessages(attributesOf("take", event), messages),
      links: linksOf(messages),
      startTime: Date.now() - duration,
    };
    this.end(this.#tracer.startSpan(`take ${queue}`, options, parent), event);
  }

  /** Starts the span of a handler, and makes the handler run in it. */
  process(event: HandleEvent): Span {
    const { queue, messages } = event;
    const options = {
      kind: SpanKind.CONSUMER,
      attributes: withMessages(attributesOf("process", event), messages),
      links: linksOf(messages),
      root: true,
    };
    const [first] = messages;
    // So the handler also gets whatever else the message's headers carry, such as baggage.
    const base = messages.length === 1 && first?.id !== undefined ? contextOf(first) : ROOT_CONTEXT;
    const span = this.#tracer.startSpan(`process ${queue}`, options, base);
    const own = trace.setSpan(base, span);
    const { around } = event;
    event.around = (run) => context.with(own, () => (around === undefined ? run() : around(run)));
    return span;
  }

  /** Starts the span of a settlement by hand. */
  settle(event: SettleEvent): Span {
    const { queue, operation, message } = event;
    return this.#tracer.startSpan(`${operation} ${queue}`, {
      kind: SpanKind.CLIENT,
      attributes: withMessages(attributesOf(operation, event), [message]),
      links: linksOf([message]),
    });
  }

  /** Ends the span of a settlement. */
  settled(span: Span, event: SettleEvent): void {
    if (event.result === false) span.setAttribute("delayline.settled", false);
    this.end(span, event);
  }

  /** Ends a span. An error in this is only reported, so that metrics are still recorded. */
  end(span: Span, event: { readonly error?: unknown }): void {
    shielded("end a span", () => {
      if ("error" in event) {
        const { error } = event;
        const message = isError(error) ? textField(error, "message") : undefined;
        span.setAttribute("error.type", errorTypeOf(error));
        span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
        if (isError(error)) span.recordException(exceptionOf(error));
      }
      span.end();
    });
  }
}

/** The context that a message's headers carry; empty if the propagator cannot read them. */
function contextOf({ headers }: DeliveredMessage): Context {
  return (
    shielded("extract a context", () => propagation.extract(ROOT_CONTEXT, headers)) ?? ROOT_CONTEXT
  );
}

/** Adds the attributes of the messages of a span. */
function withMessages(attributes: Attributes, messages: readonly DeliveredMessage[]): Attributes {
  const [first] = messages;
  if (first === undefined || messages.length > 1) {
    return { ...attributes, "messaging.batch.message_count": messages.length };
  }
  const { id, key, attempt } = first;
  // Messages of a plain queue have no id, key or attempt.
  if (id === undefined) return attributes;
  const more = { "messaging.message.id": id, "delayline.message.attempt": attempt };
  if (key === undefined) return { ...attributes, ...more };
  return { ...attributes, ...more, "delayline.message.key": key };
}

/** Links to the spans of the offers of these messages. */
function linksOf(messages: readonly DeliveredMessage[]): Link[] {
  return messages.flatMap((message) => {
    const { id } = message;
    if (id === undefined) return [];
    const offered = trace.getSpanContext(contextOf(message));
    if (offered === undefined || !isSpanContextValid(offered)) return [];
    return [{ context: offered, attributes: { "messaging.message.id": id } }];
  });
}

/**
 * Runs code of the user's SDK: propagators, samplers, processors. Its errors are reported by `diag`: thrown in a
 * diagnostics channel, they would end the process.
 *
 * @returns the result of `work`, or undefined if it throws.
 */
export function shielded<Result>(what: string, work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    diag.error(`delayline: cannot ${what}`, error);
    return undefined;
  }
}

/** What a span keeps of an error. A getter of it that throws must not keep the span from ending. */
function exceptionOf(error: Error): Exception {
  const code = textField(error, "code");
  const stack = textField(error, "stack");
  return {
    name: textField(error, "name") ?? "Error",
    message: textField(error, "message") ?? "",
    ...(code !== undefined && { code }),
    ...(stack !== undefined && { stack }),
  };
}
