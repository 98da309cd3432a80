import { DelayedCollection } from "../delayed/delayed-collection.ts";
import type { DelayedFace } from "../delayed/delayed-messages.ts";
import type { OfferResult } from "../delayed/offering.ts";
import { callSignal, checkDuration, checkFunction, checkIdOrKey } from "../queue/checks.ts";
import { isMessageId, type MessageId } from "../queue/message/message.ts";
import { checkFind, type FindOptions } from "../queue/find-options.ts";
import type { CallOptions } from "../queue/options.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { HandleOptions } from "../queue/queue-handle.ts";
import { Subscription } from "../queue/consuming/subscription.ts";
import {
  checkTakeMany,
  type TakeManyOptions,
  type TakeOptions,
} from "../queue/consuming/take-options.ts";
import type { ConsumingFace } from "./consuming/consuming.ts";
import type { DeadLetters } from "./dead-letters.ts";
import type { Delivery } from "./consuming/delivery.ts";
import type { BatchHandler, ReliableHandler } from "./consuming/handling.ts";
import type { ReliableNewMessage, ReliableOfferOptions } from "./reliable-offer.ts";
import type { RoutedSubscription } from "./consuming/routed-subscription.ts";
import type {
  BatchSubscribeOptions,
  ReliableSubscribeOptions,
  RouteOptions,
} from "./consuming/subscribe-options.ts";

/**
 * A queue whose messages are acknowledged: a consumer that dies, or a handler that throws, loses nothing. Every
 * message is handled at least once by each group.
 *
 * It offers, finds and cancels as a {@link DelayedQueue} does. At its deadline a message becomes ready in a stream, and is delivered to
 * one consumer of each group, until one of them acknowledges it. One that fails comes back after a pause, as often as
 * `maxDeliveries` says, and then becomes a dead letter. Made by `Delayline.getReliableQueue`.
 *
 * A message that waits for its next attempt is *retrying*: {@link size}, {@link nextDeadline} and {@link clear} concern
 * it, too, and it can be found, cancelled and rescheduled by its id, which stays. Its key is free. {@link find},
 * {@link soonest}, {@link cancelWhere} and what treats the messages as a collection see the delayed ones. Iteration does
 * not read: it takes.
 *
 * Methods that wait survive a lost connection: it is reported by an `error` event, and the wait goes on. Otherwise
 * every method rejects with {@link RedisError} if Redis refuses a command or its reply is lost, and with
 * {@link ClosedError} after `close()`.
 */
export class ReliableQueue<T = unknown> extends DelayedCollection<T> {
  /** The messages that have failed for good, of all groups. */
  readonly deadLetters: DeadLetters<T>;
  /** The consumer group of this handle. */
  readonly group: string;
  readonly #messages: DelayedFace;
  readonly #consuming: ConsumingFace<T>;

  /** @internal Use `Delayline.getReliableQueue`. */
  constructor(
    open: HandleOptions,
    messages: DelayedFace,
    payloads: Payloads<T>,
    reliable: {
      readonly group: string;
      readonly deadLetters: DeadLetters<T>;
      readonly consuming: ConsumingFace<T>;
    },
  ) {
    super(open, messages, payloads);
    this.#messages = messages;
    this.group = reliable.group;
    this.deadLetters = reliable.deadLetters;
    this.#consuming = reliable.consuming;
  }

  /** Offers a message, which may have headers; otherwise as {@link DelayedHandle.offer}. */
  override offer(payload: T, delay: number, options?: ReliableOfferOptions): Promise<OfferResult> {
    return super.offer(payload, delay, options);
  }

  /** Offers a message, which may have headers; otherwise as {@link DelayedHandle.offerAt}. */
  override offerAt(
    payload: T,
    at: Date | number,
    options?: ReliableOfferOptions,
  ): Promise<OfferResult> {
    return super.offerAt(payload, at, options);
  }

  /** Offers messages, which may have headers; otherwise as {@link DelayedHandle.offerMany}. */
  override offerMany(
    messages: Iterable<ReliableNewMessage<T>>,
    options?: CallOptions,
  ): Promise<OfferResult[]> {
    return super.offerMany(messages, options);
  }

  /** Whether a message with this id is delayed or retrying, or one with this key is delayed. O(log N). */
  override async has(idOrKey: MessageId | string, options?: FindOptions): Promise<boolean> {
    checkIdOrKey(idOrKey);
    if (!isMessageId(idOrKey)) return await super.has(idOrKey, options);
    return (await this.#messages.get(idOrKey, ...checkFind(options))) !== undefined;
  }

  /**
   * Waits for a message and takes it. It is in your hands until it is settled. If it is neither settled nor extended
   * within `visibilityTimeout`, it comes back, to anybody in the group.
   *
   * Aborting loses nothing: a message that arrives at that moment goes back.
   *
   * @throws the signal's reason, if it is aborted.
   * @throws {TypeError} if an option is not legal.
   */
  async take(options: TakeOptions = {}): Promise<Delivery<T>> {
    const signal = callSignal(options, "take option");
    for (;;) {
      const [delivery] = await this.#consuming.take(1, { signal, timeout: Infinity });
      if (delivery !== undefined) return delivery;
    }
  }

  /**
   * Takes a message if there is one, or if one comes within `timeout` milliseconds; undefined if none came. Otherwise
   * as {@link take}.
   *
   * @throws {RangeError | TypeError} if `timeout` is not a number, negative or not finite.
   */
  async poll(timeout = 0, options?: CallOptions): Promise<Delivery<T> | undefined> {
    checkDuration("timeout", timeout);
    const [delivery] = await this.#consuming.take(1, { signal: callSignal(options), timeout });
    return delivery;
  }

  /**
   * Takes up to `max` messages as soon as there is at least one; none if nothing came within `timeout`. Each is
   * settled by itself; those that are settled in one turn of the event loop travel together.
   *
   * @throws {RangeError | TypeError} if an option is not legal.
   * @throws the signal's reason, if it is aborted.
   */
  async takeMany(options: TakeManyOptions): Promise<Delivery<T>[]> {
    const { max, timeout = Infinity, signal } = checkTakeMany(options);
    return await this.#consuming.take(max, { signal, timeout });
  }

  /**
   * Calls `handler` with each message and its delivery, until the subscription or the client is closed.
   *
   * If the handler returns, its message is acknowledged. If it throws, the message comes back as `retry` says, and the
   * error is given to `onError` or reported by an `error` event. If it throws a {@link RejectError}, the message is a
   * dead letter at once. What the handler settles itself stays as it was settled.
   *
   * @throws {RangeError | TypeError} if `handler` is no function, or an option is not legal.
   */
  subscribe(handler: ReliableHandler<T>, options: ReliableSubscribeOptions<T> = {}): Subscription {
    checkFunction("handler", handler);
    return this.#consuming.subscribe(handler, options);
  }

  /**
   * Calls `handler` with up to `max` deliveries at once, as many as there are. If it returns, those that it has not
   * settled are acknowledged together; if it throws, they are retried. Otherwise as {@link subscribe}.
   *
   * @throws {RangeError | TypeError} if `handler` is no function, or an option is not legal.
   */
  subscribeBatch(handler: BatchHandler<T>, options: BatchSubscribeOptions<T>): Subscription {
    checkFunction("handler", handler);
    return this.#consuming.subscribeBatch(handler, options);
  }

  /**
   * Calls the handler whose name the message's key begins with: `"app1:trans:notice"` for
   * `app1:trans:notice:1615283234`. The longest name wins. `unknown` says what becomes of the others; they are counted
   * in the subscription's `unknown`. Otherwise as {@link subscribe}.
   *
   * @throws {TypeError} if a name or a handler is not legal.
   */
  route(
    routes: Readonly<Record<string, ReliableHandler<T>>>,
    options: RouteOptions<T> = {},
  ): RoutedSubscription {
    return this.#consuming.route(routes, options);
  }

  /**
   * Takes messages one by one, until the client is closed: `for await (const delivery of queue)`.
   *
   * Each has to be settled in the body. While the body runs its lease lasts; what it leaves unsettled comes back
   * after a `visibilityTimeout`. `close()` waits for the body.
   */
  [Symbol.asyncIterator](): AsyncGenerator<Delivery<T>, void, void> {
    return this.#consuming.iterate();
  }
}
