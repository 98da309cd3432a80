import { DelayedHandle, stepOf } from "./delayed-handle.ts";
import type { OpenQueue } from "../partitions/open-queue.ts";
import type { GroupReach } from "../partitions/reach.ts";
import {
  checkCall,
  checkFind,
  type Call,
  type CallOptions,
  type FindOptions,
} from "../queue/call.ts";
import { checkDuration, checkFunction, checkIdOrKey } from "../queue/checks.ts";
import type { MessageHeaders } from "../queue/message/headers.ts";
import { isMessageId, type MessageId } from "../queue/message/message.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { ReliableSettings } from "./reliable-options.ts";
import { Subscription } from "../queue/consuming/subscription.ts";
import { checkTakeMany, type TakeManyOptions } from "../queue/consuming/take-options.ts";
import { Consuming } from "../reliable/consuming/consuming.ts";
import { DeadLetters } from "./dead-letters.ts";
import { handledMessage, type HandledMessage } from "./handled-message.ts";
import { partsOf } from "./queue-handle.ts";
import {
  checkRevoke,
  haveEnded,
  revokedOf,
  runningMessage,
  type Revoked,
  type RevokeOptions,
  type RunningMessage,
} from "./revoked.ts";
import { Handled } from "../reliable/handled.ts";
import type { Delivery, Follow } from "../reliable/consuming/delivery.ts";
import type { BatchHandler, ReliableHandler } from "../reliable/consuming/handling.ts";
import type { RoutedSubscription } from "../reliable/consuming/routed-subscription.ts";
import type {
  BatchSubscribeOptions,
  ReliableSubscribeOptions,
  RouteOptions,
} from "../reliable/consuming/subscribe-options.ts";

/**
 * A queue whose messages are acknowledged. Each consumer group handles each message at least once, even if consumers
 * die or handlers throw. Made by `Delayline.getReliableQueue`.
 *
 * A message passes through these states:
 *
 * 1. *delayed*: it is offered, found and cancelled as in a {@link DelayedQueue}.
 * 2. *ready*: at its deadline it is moved to a stream, where each group receives it.
 * 3. *in flight*: it was delivered to one consumer of the group, which holds a lease on it until it acknowledges it.
 * 4. *retrying*: an attempt failed, and the message waits as long as `retry` says. Then it is ready again for this
 *    group.
 * 5. *dead*: it was rejected, or its last delivery failed. It is one of the {@link deadLetters}.
 *
 * A consumer that gives no sign of life for `leaseTimeout` loses its leases, and its messages are ready again.
 *
 * {@link size}, {@link nextDeadline} and {@link clear} include the retrying messages. A retrying message can also be
 * found, cancelled and rescheduled, by its id, which stays the same, or its key. It holds its key, unless a message
 * offered while it was in flight has taken it. {@link soonest} yields only delayed messages. Iterating the queue takes
 * messages.
 *
 * Methods that wait survive a lost connection: an `error` event reports it, and the wait goes on. Every other method
 * rejects with {@link RedisError} if Redis refuses a command or its reply is lost, and every method with
 * {@link ClosedError} after `close()`.
 */
export class ReliableQueue<T = unknown> extends DelayedHandle<T, MessageHeaders> {
  /** The messages of all groups that are no longer retried. */
  readonly deadLetters: DeadLetters<T>;
  /** The consumer group of this handle. */
  readonly group: string;
  readonly #reach: GroupReach;
  readonly #consuming: Consuming<T>;

  /** @internal Use `Delayline.getReliableQueue`. */
  constructor(open: OpenQueue, payloads: Payloads<T>, settings: ReliableSettings<T>) {
    const reach = open.openGroup(settings.group);
    super(open, reach, payloads, settings.queue);
    this.group = settings.group.group;
    this.deadLetters = new DeadLetters(open.parts, payloads);
    this.#reach = reach;
    const exclusive = settings.exclusive ? open.exclusive : undefined;
    const follow: Follow = (options, id, offer, call) =>
      stepOf(this, options, offer, { isMany: true, id, call });
    this.#consuming = new Consuming(open, reach, payloads, settings, follow, exclusive);
  }

  /**
   * Returns which groups have handled the message with this id, or the last message with this key, the newest first.
   *
   * Redis remembers this only with the option `keepHandled`, and only for that time. Otherwise the result is empty and says
   * nothing: a message that is nowhere may have been handled, cancelled, or never offered.
   *
   * O(1) if nothing is remembered. Otherwise it reads up to 100,000 short entries in steps of 40; with an id, only the entries
   * since its deadline. In a partitioned queue it asks all partitions.
   *
   * @throws {TypeError | RangeError} if `idOrKey` is neither an id nor a valid key.
   */
  async handled(idOrKey: MessageId | string, options?: CallOptions): Promise<HandledMessage[]> {
    checkIdOrKey(idOrKey);
    const call = checkCall(options);
    const parts = await partsOf(this).all(call);
    const notes = await Promise.all(parts.map(({ queue }) => new Handled(queue).of(idOrKey, call)));
    return notes
      .flat()
      .toSorted((a, b) => b.handledAt - a.handledAt)
      .map(handledMessage);
  }

  /**
   * Revokes a message, wherever it is: once this returns, no handler of any group begins with it again. The result says where it
   * was. An id means one message. A key means the message that holds the key, and every ready, running or dead message that was
   * offered with it. A retrying message that has lost its key to a newer one is found by its id only.
   *
   * A running handler continues, but its settlement counts for nothing: `ack`, `nack`, `reject` and `extend` return false, and an
   * error that it throws leads neither to a retry nor to a dead letter. The `signal` of its delivery is aborted with a
   * {@link RevokedError}, within milliseconds or at the latest with the consumer's next sign of life: after a third of the lease,
   * at most 20 s. The stage `running` includes a message on its way to a handler; that handler never begins. With `wait`,
   * `hasEnded` says whether all handlers have ended.
   *
   * The key is free at once, even while a handler runs. If Redis's reply is lost with the connection, the promise rejects: call
   * again.
   *
   * With an id it takes one script of O(log N), if the message is delayed or retrying or was moved on time. With a key, or if the
   * message is gone, it reads everything that is ready, running or dead, 200 entries per script: 55 scripts for 10,000. Calls of
   * one turn of the event loop share them.
   *
   * @throws {TypeError | RangeError} if `idOrKey` is neither an id nor a valid key, or an option is not legal.
   */
  async revoke(idOrKey: MessageId | string, options?: RevokeOptions): Promise<Revoked> {
    checkIdOrKey(idOrKey);
    const { reason, wait, call } = checkRevoke(options);
    const found = await this.#reach.revocations.revoke(idOrKey, reason, call);
    return { ...revokedOf(found), hasEnded: await haveEnded(found, wait, call) };
  }

  /**
   * Returns where a message is, as {@link revoke} does, but changes nothing. Costs the same. Exact at the instant of its last
   * script.
   *
   * @throws {TypeError | RangeError} if `idOrKey` is neither an id nor a valid key.
   */
  async stage(idOrKey: MessageId | string, options?: FindOptions): Promise<Revoked> {
    checkIdOrKey(idOrKey);
    const found = revokedOf(await this.#reach.revocations.stage(idOrKey, checkFind(options)));
    const { stage, handledAt } = found;
    const reached = stage === "gone" && handledAt !== undefined ? "handled" : stage;
    return { ...found, stage: reached, hasEnded: stage !== "running" };
  }

  /**
   * Iterates over the messages that consumers of all groups hold, oldest first within a group and partition:
   * `for await (const { id, pid } of queue.running())`. A message that a consumer holds back in strict order is not
   * running.
   *
   * Reads what is in flight in pages of 12. Not a snapshot.
   */
  running(options?: CallOptions): AsyncGenerator<RunningMessage, void, void> {
    return this.#running(checkCall(options));
  }

  async *#running(call: Call | undefined): AsyncGenerator<RunningMessage, void, void> {
    for (const { revocations } of await partsOf(this).all(call)) {
      for await (const one of revocations.running(call)) yield runningMessage(one);
    }
  }

  /** Returns whether a message with this id or key is delayed or retrying. O(log N). */
  override async has(idOrKey: MessageId | string, options?: FindOptions): Promise<boolean> {
    checkIdOrKey(idOrKey);
    if (!isMessageId(idOrKey)) return await super.has(idOrKey, options);
    return (await this.#reach.delayed.get(idOrKey, checkFind(options))) !== undefined;
  }

  /**
   * Waits for a message and takes it.
   *
   * The caller must settle or extend the delivery within `leaseTimeout`. Otherwise the attempt has failed, and the
   * message is ready again for the group. Aborting loses nothing: a message that arrives at that moment is returned to
   * the group.
   *
   * @throws the signal's reason, if it is aborted.
   * @throws {TypeError} if an option is not legal.
   */
  async take(options: CallOptions = {}): Promise<Delivery<T>> {
    const call = checkCall(options, "take option");
    for (;;) {
      const [delivery] = await this.#consuming.take(1, { ...call, timeout: Infinity, wait: 0 });
      if (delivery !== undefined) return delivery;
    }
  }

  /**
   * Takes a message, waiting up to `timeout` milliseconds for one. Returns undefined if none came. Otherwise like
   * {@link take}.
   *
   * @throws {RangeError | TypeError} if `timeout` is not a number, negative or not finite.
   */
  async poll(timeout = 0, options?: CallOptions): Promise<Delivery<T> | undefined> {
    checkDuration("timeout", timeout, { call: "poll(timeout, options)", endless: "use take" });
    const [delivery] = await this.#consuming.take(1, { ...checkCall(options), timeout, wait: 0 });
    return delivery;
  }

  /**
   * Takes up to `limit` messages as soon as there is at least one. Returns none if none came within `timeout`. With `wait` it then
   * waits for more, until there are `limit` or that time is over. It renews the leases during the wait; `leaseTimeout` begins when
   * it returns. If the call is aborted or the client closes, all go back to the group as if they had never been taken.
   *
   * Settle each delivery separately. Settlements of one turn of the event loop share a round trip.
   *
   * @throws {RangeError | TypeError} if an option is not legal.
   * @throws the signal's reason, if it is aborted.
   */
  async takeMany(options: TakeManyOptions): Promise<Delivery<T>[]> {
    const { limit, timeout = Infinity, wait = 0, signal } = checkTakeMany(options);
    return await this.#consuming.take(limit, { signal, timeout, wait });
  }

  /**
   * Calls `handler` with each message and its delivery, until the subscription or the client is closed.
   *
   * If the handler returns, the message is acknowledged. If it throws, the message is retried as `retry` says, and
   * the error is passed to `onError`, or reported by an `error` event. If it throws a {@link RejectError}, the
   * message becomes a dead letter at once. A delivery that the handler settles itself stays settled that way.
   *
   * @throws {RangeError | TypeError} if `handler` is not a function, or an option is not legal.
   */
  subscribe(handler: ReliableHandler<T>, options: ReliableSubscribeOptions<T> = {}): Subscription {
    checkFunction("handler", handler);
    return this.#consuming.subscribe(handler, options);
  }

  /**
   * Calls `handler` with up to `limit` deliveries at a time: as many as are there, or with `wait` as many as come within that time
   * of the first. If the handler returns, the deliveries that it has not settled are acknowledged together. If it throws, they are
   * retried. Otherwise like {@link subscribe}.
   *
   * @throws {RangeError | TypeError} if `handler` is not a function, or an option is not legal.
   */
  subscribeBatch(handler: BatchHandler<T>, options: BatchSubscribeOptions<T>): Subscription {
    checkFunction("handler", handler);
    return this.#consuming.subscribeBatch(handler, options);
  }

  /**
   * Calls the handler whose name the message's key begins with: the handler `"app1:trans:notice"` for the key
   * `app1:trans:notice:1615283234`. The longest matching name wins. The option `unknown` decides what to do with other
   * messages, and the subscription's `unknown` counts them. Otherwise like {@link subscribe}.
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
   * The body has to settle each delivery. Its lease lasts as long as the body runs. A delivery that the body leaves
   * unsettled is ready again for the group after a `leaseTimeout`. `close()` waits for the body.
   */
  [Symbol.asyncIterator](): AsyncGenerator<Delivery<T>, void, void> {
    return this.#consuming.iterate();
  }
}
