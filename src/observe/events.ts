import { channel, tracingChannel, type TracingChannel } from "node:diagnostics_channel";
import { nextTick } from "../time/runtime.ts";

/**
 * Wraps an operation: it must call `run` once and return its result. If it does not call `run`, the operation runs
 * unwrapped.
 */
type Around = <Result>(run: () => Result) => Result;

interface Operation {
  /** The queue's name; for a partition, the name of the whole queue. */
  readonly queue: string;
  /**
   * A subscriber to the start may set this, to give the operation a context. If it is set already, the new wrapper must
   * call the old one.
   */
  around?: Around;
  /** At the end: what was thrown. */
  error?: unknown;
}

/** `tracing:delayline:offer:*`: a call that offers messages. */
export interface OfferEvent extends Operation {
  /** How many messages the call offers. */
  readonly count: number;
  /** The business key of a single message, if it has one. */
  readonly key: string | undefined;
  /**
   * A subscriber to the start may add headers here, which every message of the call gets. A message's own header of
   * the same name wins, and headers that do not fit beside its own are left out. Undefined for a plain queue, whose
   * messages carry no headers.
   */
  readonly headers: Record<string, string> | undefined;
  /** At the end: what the call returns, one result or one for each message. */
  result?: unknown;
}

/** A message that a consumer holds. Of a message of a plain queue nothing but its payload is known: these are undefined or empty. */
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

/** Describes any message of a plain queue: nothing else is known about it. */
export const PLAIN_MESSAGE: DeliveredMessage = Object.freeze({
  id: undefined,
  key: undefined,
  headers: Object.freeze({}),
  attempt: 1,
  readyAt: undefined,
  takenAt: undefined,
});

interface Consumption extends Operation {
  /** The consumer group; undefined for a plain queue. */
  readonly group: string | undefined;
}

/** `tracing:delayline:take:*`: a call that takes messages, including its wait. */
export interface TakeEvent extends Consumption {
  /** At the end: the messages that were taken. */
  messages?: readonly DeliveredMessage[];
}

/** `tracing:delayline:handle:*`: a run of a handler. */
export interface HandleEvent extends Consumption {
  readonly messages: readonly DeliveredMessage[];
}

/** `tracing:delayline:settle:*`: a user's call of a delivery's `ack`, `nack`, `reject` or `extend`. */
export interface SettleEvent extends Consumption {
  readonly operation: "ack" | "nack" | "reject" | "extend";
  readonly message: DeliveredMessage;
  /** At the end: whether it was carried out. */
  result?: unknown;
}

/** `delayline:transfer`: due messages were made ready. */
export interface TransferEvent {
  /** The queue's name; for a partition, the name of the whole queue. */
  readonly queue: string;
  /** How many messages. */
  readonly count: number;
  /**
   * Milliseconds from the deadline of the oldest message until the transfer, without the wait for its turn if the queue has
   * a rate; not finite if unknown.
   */
  readonly lateness: number;
  /** When they became ready (epoch ms on the server's clock). */
  readonly at: number;
}

/** `delayline:dropped`: a due message was dropped because of a condition that it was offered with. */
export interface DroppedEvent {
  /** The queue's name; for a partition, the name of the whole queue. */
  readonly queue: string;
  /** The id that its offer returned. */
  readonly id: string;
  /** The business key, if it had one. */
  readonly key: string | undefined;
  /**
   * The condition: `onlyIf` did not hold, or `deliverWithin` had passed; or `overlap`: another run of its schedule was ready
   * or in flight.
   */
  readonly reason: "onlyIf" | "deliverWithin" | "overlap";
}

/** `delayline:restored`: Redis went back to an older copy of its data, such as a restored backup. */
export interface RestoredEvent {
  /** The queues whose data show it. The others on that server went back as well. */
  readonly queues: readonly string[];
  /** The newest instant that Redis had shown to this process (epoch ms on the server's clock). */
  readonly knownAt: number;
  /** The newest instant that it shows now (epoch ms); undefined if its data do not tell. */
  readonly foundAt: number | undefined;
  /** Whether this client pauses its queues for it: `onRestore: "pause"`. */
  readonly isPausing: boolean;
}

// Node finds channels by name, so several copies of this file share them. The types of Node 26 have the two parameters
// of a channel in the other order than those of Node 20, so both are the event.
export const offers = tracingChannel<OfferEvent, OfferEvent>("delayline:offer");
export const takes = tracingChannel<TakeEvent, TakeEvent>("delayline:take");
export const handlings = tracingChannel<HandleEvent, HandleEvent>("delayline:handle");
export const settlements = tracingChannel<SettleEvent, SettleEvent>("delayline:settle");

/** The channel of {@link TransferEvent}s. */
export const transfers = channel("delayline:transfer");

/** The channel of {@link DroppedEvent}s. */
export const drops = channel("delayline:dropped");

/** The channel of {@link RestoredEvent}s. */
export const restores = channel("delayline:restored");

/**
 * Runs an operation and publishes its start and end on a tracing channel. Callers check `hasSubscribers` first: without
 * subscribers not even the event is made.
 *
 * The event's `result` becomes what the operation returns. For results with payloads see {@link tracedQuietly}.
 */
export function traced<Event extends Operation, Result>(
  tracing: TracingChannel<Event, Event>,
  event: Event,
  run: () => Promise<Result>,
): Promise<Result> {
  return tracing.tracePromise(() => within(event, run), event);
}

/** As {@link traced}, but without the result in the event. */
export async function tracedQuietly<Event extends Operation, Result>(
  tracing: TracingChannel<Event, Event>,
  event: Event,
  run: () => Promise<Result>,
): Promise<Result> {
  let result: Result | undefined;
  await traced(tracing, event, async () => {
    result = await run();
  });
  return result as Result;
}

/** Runs an operation within the wrapper that a subscriber has set: once, whatever the wrapper does and returns. */
function within<Result>({ around }: Operation, run: () => Promise<Result>): Promise<Result> {
  if (around === undefined) return run();
  let running: Promise<Result> | undefined;
  try {
    around(() => (running ??= run()) as never);
  } catch (error) {
    // Node treats what a subscriber throws in the same way.
    nextTick(() => {
      throw error;
    });
  }
  return running ?? run();
}
