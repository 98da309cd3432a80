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
import { guarded } from "./guarded.ts";
import type { Metrics } from "./metrics.ts";
import type { Spans } from "./spans.ts";

/** An operation that is under way. */
interface UnderWay {
  /** `performance.now()`. */
  readonly startedAt: number;
  /** Of a take there is none before it has brought something. */
  readonly span: Span | undefined;
  /** What a take is a part of. */
  readonly parent: Context | undefined;
}

/** Makes spans and metrics of what the diagnostics channels tell; returns what ends that. */
export function listen(spans: Spans, metrics: Metrics): () => void {
  // Kept with the event, and not beside it: a map that holds its keys weakly costs the garbage collector a lot.
  const key = Symbol("delayline/opentelemetry");
  const begin = (event: object, span: Span | undefined, parent?: Context) => {
    const underWay: UnderWay = { startedAt: performance.now(), span, parent };
    (event as Noted)[key] = underWay;
  };
  /** What is under way; undefined if it has begun before we listened. */
  const underWayOf = (event: object): UnderWay | undefined => (event as Noted)[key];

  const listeners = [
    on(offers.start, (event: OfferEvent) => begin(event, spans.offer(event))),
    on(offers.asyncEnd, (event: OfferEvent) => {
      const { startedAt, span } = underWayOf(event) ?? {};
      if (startedAt === undefined || span === undefined) return;
      spans.offered(span, event);
      metrics.ended("offer", event, performance.now() - startedAt);
      const stored = storedOf(event);
      if (stored > 0) metrics.sent(event.queue, stored);
      if (stored < event.count) metrics.sent(event.queue, event.count - stored, event.error);
    }),
    on(takes.start, (event: TakeEvent) => begin(event, undefined, context.active())),
    on(takes.asyncEnd, (event: TakeEvent) => {
      const { startedAt, parent } = underWayOf(event) ?? {};
      if (startedAt === undefined || parent === undefined) return;
      const duration = performance.now() - startedAt;
      const ended = isWaitCutShort(event.error) ? withoutError(event) : event;
      spans.take(ended, duration, parent);
      metrics.ended("take", ended, duration);
      metrics.consumed("take", ended, ended.messages ?? []);
    }),
    on(handlings.start, (event: HandleEvent) => {
      begin(event, spans.process(event));
      metrics.consumed("process", event, event.messages);
    }),
    on(handlings.asyncEnd, (event: HandleEvent) => {
      const { startedAt, span } = underWayOf(event) ?? {};
      if (startedAt === undefined || span === undefined) return;
      spans.end(span, event);
      metrics.ended("process", event, performance.now() - startedAt);
    }),
    on(settlements.start, (event: SettleEvent) => begin(event, spans.settle(event))),
    on(settlements.asyncEnd, (event: SettleEvent) => {
      const { startedAt, span } = underWayOf(event) ?? {};
      if (startedAt === undefined || span === undefined) return;
      spans.settled(span, event);
      metrics.ended(event.operation, event, performance.now() - startedAt);
    }),
    on(transfers, (event: TransferEvent) => metrics.transferred(event)),
  ];
  return () => {
    for (const end of listeners) end();
  };
}

/** An event, and what a listener has noted with it. */
type Noted = Record<symbol, UnderWay | undefined>;

interface Channel {
  subscribe(listener: (event: unknown) => void): void;
  unsubscribe(listener: (event: unknown) => void): void;
}

/** Listens to a channel, whose events are of this type; returns what ends that. */
function on(channel: Channel, listener: (event: never) => void): () => void {
  const listening = (event: unknown) => {
    guarded("record an operation", () => listener(event as never));
  };
  channel.subscribe(listening);
  return () => channel.unsubscribe(listening);
}

/**
 * Whether a wait for messages was ended as somebody wished: the client was closed, as when a loop ends, or the caller's
 * signal was aborted. A reason of the caller's own cannot be told from an error.
 */
function isWaitCutShort(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, name } = error as Error & { readonly code?: unknown };
  return code === "CLOSED" || name === "AbortError" || name === "TimeoutError";
}

/** A take that has brought nothing. */
function withoutError({ queue, group }: TakeEvent): TakeEvent {
  return { queue, group };
}

/** How many messages of an offer Redis has stored. */
function storedOf(event: OfferEvent): number {
  if (!("error" in event)) return event.count;
  // An error of several offers tells of each.
  const { results } = Object(event.error) as { readonly results?: readonly unknown[] };
  return Array.isArray(results) ? results.filter((one) => !(one instanceof Error)).length : 0;
}
