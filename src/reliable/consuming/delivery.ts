import type { NextStep } from "../../queue/landing.ts";
import type { OfferResult } from "../../queue/offering.ts";
import { hasOffer, type NewMessage, type OffersTo } from "../../queue/new-message.ts";
import { isError, textOfThrown } from "../../values/thrown.ts";
import {
  settlements,
  traced,
  type DeliveredMessage,
  type SettleEvent,
} from "../../observe/events.ts";
import { callOf, checkCall, type Call, type CallOptions } from "../../queue/call.ts";
import { checkDuration, checkOptions, checkSignal } from "../../queue/checks.ts";
import type { FailedAttempt } from "../../queue/message/failed-attempt.ts";
import type { MessageHeaders } from "../../queue/message/headers.ts";
import { messageIdAt, type MessageId } from "../../queue/message/message.ts";
import { failuresIn, type Trailer } from "../../queue/message/trailer.ts";
import type { Held } from "../group/held.ts";

/** Options of {@link Delivery.nack}. */
export interface NackOptions extends CallOptions {
  /** Milliseconds until the next attempt. Defaults to the pause that the queue's `retry` chooses. */
  readonly delay?: number;
  /**
   * Whether the message's whole lane rests for `delay`, which is then required: until it ends, no message of the lane becomes
   * ready. Use it when a partner answers 429 and says when to come again. Messages that are already ready are still delivered. Has
   * no effect in a queue without lanes. Costs a script. Defaults to false.
   */
  readonly holdLane?: boolean;
  /**
   * Why the attempt failed. The message keeps 200 bytes of it in its {@link Delivery.failures}; a dead letter keeps
   * 1,000 characters. An Error stands for its message. Defaults to `"nack"`.
   */
  readonly reason?: string | Error;
}

/** Options of {@link Delivery.ack} that offer messages in the same step. */
export interface AckOptions<
  T,
  Headers extends MessageHeaders = MessageHeaders,
> extends CallOptions {
  /**
   * The messages, each as in `offerMany` but without `onDuplicate`: if another message holds the key, that one keeps it. Costs
   * about ten commands for each message, in the script that acknowledges.
   */
  readonly offer: readonly NewMessage<NoInfer<T>, NoInfer<Headers>>[];
  /**
   * The queue that receives them: a handle of the same client. The queue must be on the same Redis server, and on a Cluster in the
   * same slot. Defaults to the queue of the delivery.
   */
  readonly to?: OffersTo<T, Headers> | undefined;
}

/** Checks and encodes messages that follow the one with this id, and runs `offer` with them. */
export type Follow = <Result>(
  options: AckOptions<never, never>,
  id: MessageId,
  offer: (step: NextStep) => Promise<Result>,
  call?: Call,
) => Promise<Result>;

/** What deliveries use of their handle. */
export interface DeliveryHost {
  /** The queue's name. */
  readonly queue: string;
  /** The consumer group's name. */
  readonly group: string;
  readonly ack: (held: Held, call?: Call) => Promise<boolean>;
  readonly ackAndOffer: (held: Held, step: NextStep, call?: Call) => Promise<OfferResult[] | false>;
  /** Checks and encodes the messages that follow a delivery, and runs `offer` with them. */
  readonly follow: Follow;
  /** Makes the message retry in the failure's `delay` milliseconds, or as the retry ladder says. */
  readonly nack: (held: Held, failure: Failure, call?: Call) => Promise<boolean>;
  readonly reject: (held: Held, reason: string, call?: Call) => Promise<boolean>;
  /** Holds a lane of the queue for `duration` milliseconds. */
  readonly hold: (lane: string, duration: number, call?: Call) => Promise<unknown>;
  readonly extend: (held: Held, duration: number, call?: Call) => Promise<boolean>;
}

/** Why an attempt failed, and when the next one is. */
export interface Failure {
  /** Passed to the retry ladder. */
  readonly error: unknown;
  /** Kept with the message. */
  readonly reason: string;
  /** Milliseconds until the next attempt; the retry ladder decides if there is none. */
  readonly delay?: number | undefined;
}

/** The message of a delivery. */
export interface DeliveryContent<T> {
  /**
   * The id that the offer or the last reschedule returned: the same on every delivery, in every group. Record it to
   * recognise a message that you have already handled. A message that a foreign program pushed to the ready LIST got
   * its id when it moved to the stream.
   */
  readonly id: MessageId;
  /** The payload; the last one if several were collected. */
  readonly payload: T;
  /** What was collected (`onDuplicate: "collect"`), in the order of the offers; otherwise the payload alone. */
  readonly payloads: readonly T[];
  /** The business key; undefined if the message was offered without one. */
  readonly key: string | undefined;
  /** The headers; empty if the message was offered without any. */
  readonly headers: MessageHeaders;
}

/**
 * One attempt of a consumer to handle a message. It lasts until it is settled by `ack`, `nack` or `reject`, or until
 * its lease ends.
 *
 * These methods return true if they were carried out, and false if the lease was lost, the message was revoked, or the delivery was
 * settled before. If Redis's reply is lost they reject with a {@link RedisError}, and it is unknown whether they were carried out:
 * call again. If you do not, the last one that rejected is retried when the handler ends, or when the delivery would go back
 * because it was not settled in time. Aborting the `signal` of a call withdraws it.
 */
export class Delivery<T = unknown> implements DeliveryContent<T> {
  readonly payload: T;
  readonly key: string | undefined;
  readonly headers: MessageHeaders;
  /** The lane in which it waited for its turn; undefined if the message was offered without one. */
  readonly lane: string | undefined;
  /**
   * 1 on the first delivery, and one more after each failed attempt: a `nack`, a handler that threw, a lease that
   * ended, or a process that died. So it is one more than the number of {@link failures} since the last redrive, of
   * which ten are kept.
   */
  readonly attempt: number;
  readonly #collected: readonly T[];
  readonly #held: Held;
  readonly #host: DeliveryHost;
  #id: MessageId | undefined;

  /** @internal */
  constructor(
    payload: T,
    trailer: Pick<Trailer, "key" | "headers" | "lane">,
    held: Held,
    host: DeliveryHost,
    collected: readonly T[] = [],
  ) {
    this.payload = payload;
    this.key = trailer.key;
    this.headers = trailer.headers ?? NO_HEADERS;
    this.lane = trailer.lane;
    this.attempt = held.attempt;
    this.#collected = collected;
    this.#held = held;
    this.#host = host;
  }

  // Made when it is asked for, as most handlers do not.
  get id(): MessageId {
    return (this.#id ??= messageIdAt(this.#held.entry.address));
  }

  get payloads(): readonly T[] {
    return [...this.#collected, this.payload];
  }

  /**
   * The last ten failed attempts, oldest first, including those before a redrive. Each access decodes them anew.
   */
  get failures(): readonly FailedAttempt[] {
    return failuresIn(this.#held.entry.trailer);
  }

  /**
   * When the message was due (epoch ms on the Redis server's clock): the `deadline` that the offer or the last
   * reschedule of the delayed message returned, and that its {@link id} begins with.
   *
   * The same on every delivery: a retry is due later, and {@link readyAt} says when it became ready. The deadline of a
   * message that a foreign program pushed to the ready LIST is unknown; this is then when it moved to the stream.
   */
  get deadline(): number {
    return this.#held.deadline;
  }

  /**
   * When the message became ready for this attempt (epoch ms on the Redis server's clock): on the first attempt its
   * `deadline`, plus the time by which it was moved late; on a retry the end of its pause.
   *
   * Unlike `deadline` it also changes without a failure: a message that was given back because its consumer closed or a
   * take was aborted became ready again then.
   */
  get readyAt(): number {
    return this.#held.readyAt;
  }

  /**
   * When the lease ends if this process gives no further sign of life (epoch ms on the Redis server's clock).
   *
   * Each sign of life postpones it: without limit in a handler; for a delivery that was taken by hand, up to the end
   * set by `leaseTimeout` or {@link extend}.
   */
  get leaseEndsAt(): number {
    return this.#held.group.leaseEndOf(this.#held);
  }

  /**
   * Aborted when the lease of the message or of its partition is lost or ends; with a {@link RevokedError} when the message was
   * revoked. In a handler it is also aborted when the subscription begins to close. For a delivery that was taken by hand it is
   * also aborted when the closing client gives the delivery back, after waiting for the handlers.
   */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  /**
   * The fence of the message's partition in a queue that is consumed exclusively; otherwise undefined.
   *
   * A whole number below 2^53. It grows each time another process takes over the partition. For a given partition key
   * it never falls, even when the number of partitions changes. Pass it to the systems that you write to: they can then
   * refuse a process that was paused and does not yet know that it has lost the partition.
   */
  get fence(): number | undefined {
    return this.#held.lease?.fence;
  }

  /** Acknowledges the message: this group has handled it. */
  async ack(options?: CallOptions): Promise<boolean>;
  /**
   * Acknowledges the message and offers others in the same step: both, or neither. So a saga neither loses a step nor begins one
   * twice, whichever process dies.
   *
   * Returns the results of the offers in their order. Returns false, and offers nothing, if the lease was lost, the message was
   * revoked, or the delivery was settled before. If another message holds a key, it keeps it: the outcome of that offer is
   * `"existing"`, and this message is acknowledged all the same.
   *
   * In a partitioned queue the messages must be in the partition of this one; messages without a key inherit it.
   *
   * If Redis's reply is lost it rejects, as the other settlements do, and is retried when the handler ends. Calling it again offers
   * nothing twice: it returns false if the first call was carried out.
   *
   * @throws {TypeError | RangeError} naming the message, the rule and the value; or if one script cannot write to both queues.
   * Nothing was done.
   * @throws {EncodeError | PayloadTooLargeError} if a payload cannot be encoded, or is too large; nothing was done.
   */
  async ack<U = T, Headers extends MessageHeaders = MessageHeaders>(
    options: AckOptions<U, Headers>,
  ): Promise<OfferResult[] | false>;
  async ack(
    options: CallOptions | AckOptions<never, never> = {},
  ): Promise<boolean | OfferResult[]> {
    if (!hasOffer<AckOptions<never, never>>(options)) {
      const call = checkCall(options);
      return await this.#traced("ack", () => this.#host.ack(this.#held, call));
    }
    checkOptions("ack option", options, ["offer", "to", "signal"]);
    checkSignal(options.signal);
    const call = callOf(options);
    const offer = async (step: NextStep) => {
      let offered: OfferResult[] | false = false;
      await this.#traced("ack", async () => {
        offered = await this.#host.ackAndOffer(this.#held, step, call);
        return offered !== false;
      });
      return offered;
    };
    return await this.#host.follow(options, this.id, offer, call);
  }

  /**
   * Reports that the attempt failed. The message becomes ready for its group again, in `delay` milliseconds or as the
   * queue's `retry` says. If this was delivery number `maxAttempts`, the message becomes a dead letter instead.
   *
   * @throws {TypeError | RangeError} if an option is not legal.
   */
  async nack(options: NackOptions = {}): Promise<boolean> {
    checkOptions("nack option", options, ["delay", "holdLane", "reason", "signal"]);
    const { delay, holdLane = false, reason = "nack" } = options;
    checkSignal(options.signal);
    if (delay !== undefined) checkDuration("delay", delay);
    if (typeof holdLane !== "boolean") {
      throw new TypeError(`holdLane must be a boolean, got ${typeof holdLane}`);
    }
    if (holdLane && delay === undefined) throw new TypeError("holdLane needs a delay");
    const text = checkReason(reason);
    const error = typeof reason === "string" ? new Error(reason) : reason;
    const failure = { delay, reason: text, error };
    // Before: else its next messages might come in between.
    if (holdLane) await this.#host.hold(this.lane ?? "", delay as number, callOf(options));
    return await this.#traced("nack", () => this.#host.nack(this.#held, failure, callOf(options)));
  }

  /**
   * Makes the message a dead letter at once. The letter keeps 1,000 characters of `reason`, or of an Error's message.
   *
   * @throws {TypeError} if `reason` is neither a string nor an Error.
   */
  async reject(reason: string | Error = "rejected", options?: CallOptions): Promise<boolean> {
    const text = checkReason(reason);
    const call = checkCall(options);
    return await this.#traced("reject", () => this.#host.reject(this.#held, text, call));
  }

  /**
   * Makes the lease of a delivery that was taken by hand end in `duration` milliseconds from now.
   *
   * The process must still give signs of life within each lease timeout. In a handler the lease has no time limit, so
   * this only checks whether it is still held.
   *
   * @throws {TypeError | RangeError} if `duration` is not legal.
   */
  async extend(duration: number, options?: CallOptions): Promise<boolean> {
    checkDuration("duration", duration);
    const call = checkCall(options);
    return await this.#traced("extend", () => this.#host.extend(this.#held, duration, call));
  }

  /** Runs a settlement, and publishes a {@link SettleEvent}. */
  #traced(operation: SettleEvent["operation"], run: () => Promise<boolean>): Promise<boolean> {
    if (!settlements.hasSubscribers) return run();
    const { queue, group } = this.#host;
    const message = deliveredMessageOf({ delivery: this, held: this.#held });
    return traced(settlements, { queue, group, operation, message }, run);
  }
}

const NO_HEADERS: MessageHeaders = Object.freeze({});

/** A delivery, and the bytes that it was made from. */
export interface Delivered<T> {
  readonly delivery: Delivery<T>;
  readonly held: Held;
}

/** A delivery as events describe it, without the payload. */
export function deliveredMessageOf({ delivery, held }: Delivered<unknown>): DeliveredMessage {
  const { id, key, headers, attempt } = delivery;
  const { readyAt, takenAt } = held;
  return { id, key, headers, attempt, readyAt, takenAt };
}

/** Returns the text of a reason. */
function checkReason(reason: unknown): string {
  if (typeof reason === "string" || isError(reason)) return textOfThrown(reason);
  throw new TypeError(`reason must be a string or an Error, got ${typeof reason}`);
}
