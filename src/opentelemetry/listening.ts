import { context, type Context, type Span } from "@opentelemetry/api";
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
} from "../observe/events.ts";
import type { Metrics } from "./metrics.ts";
import type { Spans } from "./spans.ts";

/** An operation that is under way. */
interface UnderWay {
  /** `performance.now()`. */
  readonly startedAt: number;
  readonly span: Span;
}

/** A take that is under way; it has no span before it has brought something. */
interface Waiting {
  readonly startedAt: number;
  readonly parent: Context;
}

/** Makes spans and metrics of what the diagnostics channels tell; returns what ends that. */
export function listen(spans: Spans, metrics: Metrics): () => void {
  const underWay = new WeakMap<object, UnderWay>();
  const waiting = new WeakMap<object, Waiting>();
  const begin = (event: object, span: Span) => {
    underWay.set(event, { startedAt: performance.now(), span });
  };
  /** Ends a span; returns how long it took (ms), or undefined if it had begun before we listened. */
  const end = (event: { readonly error?: unknown }): number | undefined => {
    const found = underWay.get(event);
    if (found === undefined) return undefined;
    spans.end(found.span, event);
    return performance.now() - found.startedAt;
  };

  const listeners: readonly [Channel, (event: any) => void][] = [
    [offers.start, (event: OfferEvent) => begin(event, spans.offer(event))],
    [
      offers.asyncEnd,
      (event: OfferEvent) => {
        const { result } = event;
        const id = (result as { readonly id?: unknown } | undefined)?.id;
        if (typeof id === "string") {
          underWay.get(event)?.span.setAttribute("messaging.message.id", id);
        }
        const duration = end(event);
        if (duration === undefined) return;
        metrics.ended("offer", event, duration);
        const { count } = event;
        const stored = storedOf(event);
        if (stored > 0) metrics.sent({ queue: event.queue }, stored);
        if (stored < count) metrics.sent(event, count - stored);
      },
    ],
    [
      takes.start,
      (event: TakeEvent) => {
        waiting.set(event, { startedAt: performance.now(), parent: context.active() });
      },
    ],
    [
      takes.asyncEnd,
      (event: TakeEvent) => {
        const found = waiting.get(event);
        if (found === undefined) return;
        const duration = performance.now() - found.startedAt;
        spans.take(event, Date.now() - duration, found.parent);
        metrics.ended("take", event, duration);
        metrics.consumed("take", event, event.messages ?? []);
      },
    ],
    [
      handlings.start,
      (event: HandleEvent) => {
        begin(event, spans.process(event));
        metrics.consumed("process", event, event.messages);
      },
    ],
    [
      handlings.asyncEnd,
      (event: HandleEvent) => {
        const duration = end(event);
        if (duration !== undefined) metrics.ended("process", event, duration);
      },
    ],
    [settlements.start, (event: SettleEvent) => begin(event, spans.settle(event))],
    [
      settlements.asyncEnd,
      (event: SettleEvent) => {
        const { result } = event;
        if (result === false) underWay.get(event)?.span.setAttribute("delayline.settled", false);
        const duration = end(event);
        if (duration !== undefined) metrics.ended(event.operation, event, duration);
      },
    ],
    [transfers, (event: TransferEvent) => metrics.transferred(event)],
  ];
  for (const [channel, listener] of listeners) channel.subscribe(listener);
  return () => {
    for (const [channel, listener] of listeners) channel.unsubscribe(listener);
  };
}

interface Channel {
  subscribe(listener: (event: unknown) => void): void;
  unsubscribe(listener: (event: unknown) => void): void;
}

/** How many messages of an offer Redis has stored. */
function storedOf(event: OfferEvent): number {
  if (!("error" in event)) return event.count;
  // An error of several offers tells of each.
  const { results } = Object(event.error) as { readonly results?: readonly unknown[] };
  return Array.isArray(results) ? results.filter((one) => !(one instanceof Error)).length : 0;
}
