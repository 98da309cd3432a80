import { channel, tracingChannel, type TracingChannel } from "node:diagnostics_channel";

/** What a subscriber may run an operation in. It has to call `run` once, and to return what that returns. If it does not, it is run without. */
type Around = <Result>(run: () => Result) => Result;

interface Operation {
  /** The queue's name; of one in partitions that of the whole queue. */
  readonly queue: string;
  /**
   * A subscriber to the start may set it, so that what is run sees its context. If it is set already, the one that is set
   * has to be run within it.
   */
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
   * Headers that all of them get besides their own, which come first: a subscriber to the start may add some. What has no
   * room besides a message's own is left out. Undefined where messages carry none: in a plain queue.
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
  /** 1 on the first delivery. */
  readonly attempt: number;
  /** When it became ready, for this attempt (epoch ms on the server's clock). */
  readonly readyAt: number | undefined;
  /** When it was taken (epoch ms on the server's clock). */
  readonly takenAt: number | undefined;
}

/** What is known of a message of a plain queue. */
export const PLAIN_MESSAGE: DeliveredMessage = Object.freeze({
  id: undefined,
  key: undefined,
  headers: Object.freeze({}),
  attempt: 1,
  readyAt: undefined,
  takenAt: undefined,
});

interface Consumption extends Operation {
  /** The consumer group; undefined of a plain queue. */
  readonly group: string | undefined;
}

/** `tracing:delayline:take:*`: a call that takes messages, with its wait. */
export interface TakeEvent extends Consumption {
  /** What was taken, at the end. */
  messages?: readonly DeliveredMessage[];
}

/** `tracing:delayline:handle:*`: a handler at work. */
export interface HandleEvent extends Consumption {
  readonly messages: readonly DeliveredMessage[];
}

/** `tracing:delayline:settle:*`: what is said of a delivery by hand. */
export interface SettleEvent extends Consumption {
  readonly operation: "ack" | "nack" | "reject" | "extend";
  readonly message: DeliveredMessage;
  /** Whether it was carried out, at the end. */
  result?: unknown;
}

/** `delayline:transfer`: messages were moved to where they are ready. */
export interface TransferEvent {
  /** The queue's name; of one in partitions that of the whole queue. */
  readonly queue: string;
  /** How many messages. */
  readonly count: number;
  /** From the deadline of the oldest of them until they were moved (ms); not finite if that is not known. */
  readonly lateness: number;
}

/** The tracing channels. They are found by name, so it does not matter who loads this file how often. */
export const offers = tracingChannel<unknown, OfferEvent>("delayline:offer");
export const takes = tracingChannel<unknown, TakeEvent>("delayline:take");
export const handlings = tracingChannel<unknown, HandleEvent>("delayline:handle");
export const settlements = tracingChannel<unknown, SettleEvent>("delayline:settle");

/** The channel of {@link TransferEvent}s. */
export const transfers = channel("delayline:transfer");

/**
 * Runs an operation, and tells who listens of its start and its end. Callers ask `channel.hasSubscribers` first: then it
 * costs nothing where nobody listens, not even the event.
 *
 * The event gets what it returns as its `result`: not for what has payloads in it, see {@link tracedQuietly}.
 */
export function traced<Event extends Operation, Result>(
  told: TracingChannel<unknown, Event>,
  event: Event,
  run: () => Promise<Result>,
): Promise<Result> {
  return told.tracePromise(() => within(event, run), event);
}

/** As {@link traced}, but what it returns is in no event. */
export async function tracedQuietly<Event extends Operation, Result>(
  told: TracingChannel<unknown, Event>,
  event: Event,
  run: () => Promise<Result>,
): Promise<Result> {
  let result: Result | undefined;
  await traced(told, event, async () => {
    result = await run();
  });
  return result as Result;
}

/** Runs an operation in what a subscriber has set: once, whatever that does and returns. */
function within<Result>({ around }: Operation, run: () => Promise<Result>): Promise<Result> {
  if (around === undefined) return run();
  let running: Promise<Result> | undefined;
  try {
    around(() => (running ??= run()) as never);
  } catch (error) {
    // As Node does it with what a subscriber throws.
    process.nextTick(() => {
      throw error;
    });
  }
  return running ?? run();
}
