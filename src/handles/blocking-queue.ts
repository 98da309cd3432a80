import {
  handlings,
  PLAIN_MESSAGE,
  takes,
  tracedQuietly,
  type TakeEvent,
} from "../observe/events.ts";
import { checkCall, type Call, type CallOptions } from "../queue/call.ts";
import { checkDuration, checkFunction, checkIterable, checkWhole } from "../queue/checks.ts";
import type { Consumer } from "../queue/consuming/consumer.ts";
import { nameOf, type Named } from "../queue/keys.ts";
import type { Payloads } from "../queue/payloads.ts";
import {
  isCutShortBy,
  reportFailure,
  tracedHandling,
  type PlainHandler,
  type OnHandlerError,
} from "../queue/consuming/handler.ts";
import { Subscription } from "../queue/consuming/subscription.ts";
import { Iteration } from "../queue/consuming/iteration.ts";
import type { OpenQueue } from "../partitions/open-queue.ts";
import type { PlainReach } from "../partitions/reach.ts";
import type { ReadyList } from "../ready/ready-list.ts";
import {
  checkSubscribe,
  checkTakeMany,
  type SubscribeOptions,
  type TakeManyOptions,
} from "../queue/consuming/take-options.ts";
import type { WaitOptions } from "../run/waiters.ts";
import { QueueHandle } from "./queue-handle.ts";
import { queueTime } from "../time/runtime.ts";

/** A payload, and the queue that it came from. */
// An alias, not an interface: users cannot name it, so their declarations write it out.
type FromQueue<T> = { readonly queue: string; readonly payload: T };

/**
 * The ready side of a queue: messages that are due, for consumers to take, oldest deadline first.
 *
 * Delivery is at most once, as in Redisson: taking a message removes it from Redis. It is lost if the consumer dies
 * afterwards, or if the connection is lost while the reply is under way. All waiting calls of a process share one
 * blocking connection per queue. Made by `Delayline.getBlockingQueue`, which also keeps the transfer running.
 *
 * `null` is a payload like any other. "No message" is `undefined`, so no built-in codec decodes anything to it: an
 * offered `undefined` comes back as `null`.
 *
 * Methods that wait survive a lost connection: an `error` event reports it, and the wait goes on. Otherwise every
 * method rejects with {@link RedisError} if Redis refuses a command or its reply is lost, and with {@link ClosedError}
 * after `close()`.
 */
export class BlockingQueue<T = unknown> extends QueueHandle {
  readonly #open: OpenQueue;
  readonly #reach: PlainReach;
  readonly #payloads: Payloads<T>;
  readonly #openNamed: (name: string) => OpenQueue;

  /** @internal Use `Delayline.getBlockingQueue`. `openNamed` opens another queue of the client. */
  constructor(open: OpenQueue, payloads: Payloads<T>, openNamed: (name: string) => OpenQueue) {
    super(open);
    this.#open = open;
    this.#reach = open.plain;
    this.#payloads = payloads;
    this.#openNamed = openNamed;
  }

  /**
   * Waits for a message and takes it.
   *
   * Within a process, calls are served first come, first served. Aborting loses nothing: a message that arrives at that
   * moment is returned to the head of the queue.
   *
   * @throws the signal's reason, if it is aborted.
   * @throws {TypeError} if an option is not legal.
   * @throws {DecodeError} if the codec cannot read the message; its bytes are in the quarantine.
   */
  async take(options: CallOptions = {}): Promise<T> {
    const call = checkCall(options, "take option");
    for (;;) {
      const taken = await this.#traced(() => this.#takeOne({ ...call, timeout: Infinity }));
      if (taken.length > 0) return taken[0] as T;
    }
  }

  /**
   * Takes a message, waiting up to `timeout` milliseconds for it (fractions count). Defaults to 0, which does not wait.
   * Returns undefined if no message came.
   *
   * @throws {RangeError | TypeError} if `timeout` is not a number, negative or not finite.
   * @throws the signal's reason, if it is aborted. No message is lost.
   * @throws {DecodeError} if the codec cannot read the message; its bytes are in the quarantine.
   */
  async poll(timeout = 0, options?: CallOptions): Promise<T | undefined> {
    checkDuration("timeout", timeout, POLL);
    const call = checkCall(options);
    const [taken] = await this.#traced(() =>
      timeout === 0 ? this.#popOne(call) : this.#takeOne({ ...call, timeout }),
    );
    return taken;
  }

  /**
   * Takes up to `limit` messages, oldest first, as soon as there is at least one. Returns none if none came within
   * `timeout`.
   *
   * Messages that the codec cannot read are left out, put into the quarantine, and reported by an `error` event.
   *
   * @throws {RangeError | TypeError} if an option is not legal.
   * @throws the signal's reason, if it is aborted.
   */
  async takeMany(options: TakeManyOptions): Promise<T[]> {
    const { limit, timeout, signal } = checkTakeMany(options);
    signal?.throwIfAborted();
    return await this.#traced(async () => {
      if (timeout === 0)
        return await this.#payloads.decodeAllTaken(await this.#reach.ready.pop(limit, { signal }));
      const taken = await this.#reach.ready.take(limit, { signal, timeout: timeout ?? Infinity });
      return await this.#payloads.decodeAllTaken(taken.map(({ payload }) => payload));
    });
  }

  /**
   * Takes a message of this queue or of one of `queues`, each a name, a definition or a handle: of the first that has
   * one, in this order. Waits up to `timeout`
   * milliseconds; 0 does not wait. Returns undefined if no message came.
   *
   * All the queues need the same codec, and on a Cluster the same slot. Each distinct list of names costs a connection
   * until the client closes. From the first call on, this process also moves due messages of all these queues, unless
   * the client's `transfer` is false.
   *
   * @throws {TypeError} if one of them cannot name a queue.
   */
  async pollFromAny(
    queues: readonly Named[],
    timeout = 0,
    options?: CallOptions,
  ): Promise<FromQueue<T> | undefined> {
    checkDuration("timeout", timeout);
    const call = checkCall(options);
    if (!Array.isArray(queues)) {
      throw new TypeError(`queues must be an array, got ${typeof queues}`);
    }
    const names = (queues as readonly Named[]).map(nameOf);
    const others = names.map((name) => this.#openNamed(name).plain);
    const lists = [this.#reach, ...others].map(({ ready }) => ready.onlyList);
    const wait = { ...call, timeout };
    const [taken] = await this.#traced(
      () => this.#takeFromAny(wait, lists, names),
      ({ queue }) => queue,
    );
    return taken;
  }

  /**
   * Calls `handler` with each message, until the subscription or the client is closed.
   *
   * If a handler throws or rejects, `onError` gets the error, or else an `error` event reports it. The next message
   * follows; the failed one is gone (at most once). A message that the codec cannot read goes to the quarantine, and an
   * `error` event reports it.
   *
   * @throws {RangeError | TypeError} if `handler` is not a function, or an option is not legal.
   */
  subscribe(handler: PlainHandler<T>, options: SubscribeOptions<T> = {}): Subscription {
    checkFunction("handler", handler);
    const { concurrency, onError } = checkSubscribe(options);
    this.#reach.ready.checkTaking();
    const { queue, joinTakes } = this.#open;
    const handle = this.#handlingBy(handler, onError);
    return this.#attend(
      new Subscription({
        queue: this.name,
        take: (wait) => this.#takeOne(wait),
        handle,
        awaits: handle,
        concurrency,
        // A block returns one message; see `PopRhythm`.
        perLoop: 1,
        report: queue.report,
        takes: joinTakes(),
      }),
    );
  }

  /**
   * Takes messages one by one, until the client is closed: `for await (const order of queue)`.
   *
   * The client's `close()` waits for the body of the loop, which may still offer, until the loop asks for the next
   * message or is left by `break`, `return` or a throw. An iterator that was advanced by hand and then dropped looks
   * like a body that runs for ever: call its `return()`, or limit the wait by `close({ handlerTimeout })`.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    yield* this.#attend(new Iteration(() => this.take())).messages();
  }

  /**
   * Takes all ready messages, or up to `limit`, without waiting.
   *
   * Messages that the codec cannot read are left out, put into the quarantine, and reported by an `error` event.
   */
  async drain(limit: number = Number.MAX_SAFE_INTEGER, options?: CallOptions): Promise<T[]> {
    const call = checkCall(options);
    checkWhole("limit", limit, 0, Number.MAX_SAFE_INTEGER);
    this.#reach.ready.checkOpen();
    return await this.#traced(() => this.#drain(limit, call));
  }

  /**
   * Puts a message at the end of the ready messages, without a delay.
   *
   * If the connection is lost before the reply arrives, ioredis may send the command again, which may store the message
   * twice: a ready message has no id. `DelayedQueue.offer` with a delay of 0 stores it once.
   *
   * @throws {EncodeError | PayloadTooLargeError} if the payload has no legal form; nothing was sent.
   */
  async put(payload: T, options?: CallOptions): Promise<void> {
    await this.putMany([payload], options);
  }

  /** Puts messages at the end of the ready messages, in this order. Otherwise like {@link put}. */
  async putMany(payloads: Iterable<T>, options?: CallOptions): Promise<void> {
    checkIterable("payloads", payloads);
    const call = checkCall(options);
    this.#reach.ready.checkOpen();
    const encoded = Array.from(payloads, (payload) => this.#payloads.encode(payload));
    for (let i = 0; i < encoded.length; i += PUT_BATCH) {
      await this.#reach.ready.push(encoded.slice(i, i + PUT_BATCH), call);
    }
  }

  /** Returns the oldest ready payload without taking it; undefined if there is none. */
  async peek(options?: CallOptions): Promise<T | undefined> {
    const payload = await this.#reach.ready.peek(checkCall(options));
    return payload && this.#payloads.decode(payload);
  }

  /** Returns the number of ready messages. O(1). */
  async size(options?: CallOptions): Promise<number> {
    return await this.#reach.ready.size(checkCall(options));
  }

  /**
   * Returns all ready payloads, oldest first, without taking them. One snapshot, read by a single O(N) command.
   *
   * Payloads that the codec cannot read are left out, and reported by an `error` event.
   */
  async readAll(options?: CallOptions): Promise<T[]> {
    return this.#payloads.decodeAll(await this.#reach.ready.readAll(checkCall(options)));
  }

  /** Drops all ready messages; returns how many. Delayed messages stay. */
  async clear(options?: CallOptions): Promise<number> {
    return await this.#reach.ready.clear(checkCall(options));
  }

  async #drain(limit: number, call: Call | undefined): Promise<T[]> {
    const payloads: Buffer[] = [];
    while (payloads.length < limit) {
      const wanted = Math.min(limit - payloads.length, DRAIN_BATCH);
      const batch = await this.#reach.ready.pop(wanted, call).catch((error: unknown) => {
        // Earlier batches have left Redis: return them rather than lose them.
        if (payloads.length > 0) return [];
        throw error;
      });
      payloads.push(...batch);
      if (batch.length < wanted) break;
    }
    return await this.#payloads.decodeAllTaken(payloads);
  }

  /** Waits for one message; returns none if none came within the timeout. */
  async #takeOne(wait: WaitOptions): Promise<T[]> {
    const [taken] = await this.#reach.ready.take(1, wait);
    return taken === undefined ? [] : [await this.#payloads.decodeTaken(taken.payload)];
  }

  /** Takes one message without waiting, if there is one. */
  async #popOne(call: Call | undefined): Promise<T[]> {
    const [payload] = await this.#reach.ready.pop(1, call);
    return payload === undefined ? [] : [await this.#payloads.decodeTaken(payload)];
  }

  async #takeFromAny(
    wait: WaitOptions,
    lists: readonly ReadyList[],
    names: readonly string[],
  ): Promise<FromQueue<T>[]> {
    if (wait.timeout === 0) {
      for (const [i, list] of lists.entries()) {
        const [payload] = await list.pop(1, wait);
        if (payload === undefined) continue;
        const queue = names[i - 1] ?? this.name;
        return [{ queue, payload: await this.#payloads.decodeTaken(payload) }];
      }
      return [];
    }
    const [first, ...others] = lists as readonly [ReadyList, ...ReadyList[]];
    const [taken] = await first.takeAny(1, wait, others);
    if (taken === undefined) return [];
    const payload = await this.#payloads.decodeTaken(taken.payload);
    return [{ queue: taken.source.ready, payload }];
  }

  /** Takes messages, traced if anybody listens to the tracing channel. */
  #traced<Message>(take: () => Promise<Message[]>, queueOf?: (taken: Message) => string) {
    if (!takes.hasSubscribers) return take();
    // Of several queues, only the reply says which one the message came from.
    const event: TakeEvent & { queue: string } = { queue: this.name, group: undefined };
    return tracedQuietly(takes, event, async () => {
      const taken = await take();
      if (taken.length > 0) event.queue = queueOf?.(taken[0] as Message) ?? this.name;
      event.messages = taken.map(() => PLAIN_MESSAGE);
      return taken;
    });
  }

  /** Returns what runs a handler on a payload, counts the outcome, and reports a failure. It never rejects. */
  #handlingBy(
    handler: PlainHandler<T>,
    onError: OnHandlerError<T> | undefined,
  ): (payload: T, closing: AbortSignal) => Promise<void> {
    const { queue, counters } = this.#open;
    return async (payload, closing) => {
      const context = { signal: closing };
      const startedAt = queueTime.now();
      try {
        await (handlings.hasSubscribers
          ? tracedHandling(() => handler(payload, context), counters, DESCRIBED)
          : handler(payload, context));
        counters.handlerEnded(startedAt);
      } catch (error) {
        counters.handlerEnded(startedAt);
        if (!isCutShortBy(closing, error)) counters.failed++;
        await reportFailure(error, payload, { queue: this.name, onError, report: queue.report });
      }
    };
  }

  /** Makes the client's `close()` wait for this consumer. */
  #attend<One extends Consumer>(consumer: One): One {
    const { consumers } = this.#open;
    consumers.add(consumer);
    void consumer.ended.then(() => consumers.delete(consumer));
    return consumer;
  }
}

/** Messages per command. */
const PUT_BATCH = 100;
const DRAIN_BATCH = 1000;

const DESCRIBED = { group: undefined, messages: [PLAIN_MESSAGE] } as const;

const POLL = { call: "poll(timeout, options)", endless: "use take" };
