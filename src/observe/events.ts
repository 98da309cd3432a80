import { tracingChannel, type TracingChannel } from "node:diagnostics_channel";

/** What a subscriber may run an operation in. It has to call `run` once, and to return what that returns. */
type Around = <Result>(run: () => Result) => Result;

interface Operation {
  /** The queue's name. */
  readonly queue: string;
  /** A subscriber to the start may set it, so that what is run sees its context. */
  around?: Around;
  /** What was thrown, at the end. */
  error?: unknown;
}

/** `tracing:delayline:offer:*`: a call that offers messages. */
export interface OfferEvent extends Operation {
  /** How many messages. */
  readonly count: number;
  /** The business key, if it is one message and has one. */
  readonly key: string | undefined;
  /**
   * Headers that all of them get besides their own, which come first: a subscriber to the start may add some.
   * Undefined where messages carry none: in a plain queue.
   */
  readonly headers: Record<string, string> | undefined;
  /** What the call returns, at the end: one result, or one for each message. */
  result?: unknown;
}

/** A message in the hands of a consumer. Of a plain queue nothing but its being there is known. */
export interface DeliveredMessage {
  readonly id: string | undefined;
  readonly key: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly attempt: number;
}

/** `tracing:delayline:take:*`: a call that takes messages, with its wait. */
export interface TakeEvent extends Operation {
  /** What was taken, at the end. */
  messages?: readonly DeliveredMessage[];
}

/** `tracing:delayline:handle:*`: a handler at work. */
export interface HandleEvent extends Operation {
  /** The consumer group; undefined of a plain queue. */
  readonly group: string | undefined;
  readonly messages: readonly DeliveredMessage[];
}

/** `tracing:delayline:settle:*`: what is said of a delivery. */
export interface SettleEvent extends Operation {
  readonly operation: "ack" | "nack" | "reject" | "extend";
  readonly id: string;
  /** Whether it was carried out, at the end. */
  result?: unknown;
}

/** The tracing channels. They are found by name, so it does not matter who loads this file how often. */
export const offers = tracingChannel<unknown, OfferEvent>("delayline:offer");
export const takes = tracingChannel<unknown, TakeEvent>("delayline:take");
export const handlings = tracingChannel<unknown, HandleEvent>("delayline:handle");
export const settlements = tracingChannel<unknown, SettleEvent>("delayline:settle");

/**
 * Runs an operation, and tells who listens of its start and its end. Callers ask `channel.hasSubscribers` first: then it
 * costs nothing where nobody listens, not even the event.
 */
export function traced<Event extends Operation, Result>(
  channel: TracingChannel<unknown, Event>,
  event: Event,
  run: () => Promise<Result>,
): Promise<Result> {
  return channel.tracePromise(
    () => (event.around === undefined ? run() : event.around(run)),
    event,
  );
}
