import {
  handlings,
  PLAIN_MESSAGE,
  takes,
  tracedQuietly,
  type HandleEvent,
  type TakeEvent,
} from "../observe/events.ts";
import { checkCall, type Call, type CallOptions } from "../queue/call.ts";
import { checkDuration, checkFunction, checkIterable, checkWhole } from "../queue/checks.ts";
import { takeBatch, type BatchSource, type BatchWait } from "../queue/consuming/batch.ts";
import type { Consumer } from "../queue/consuming/consumer.ts";
import { nameOf, type Named } from "../queue/keys.ts";
import type { Payloads } from "../queue/payloads.ts";
import {
  isCutShortBy,
  reportFailure,
  tracedHandling,
  type HandlerContext,
  type OnHandlerError,
  type PlainBatchHandler,
  type PlainHandler,
} from "../queue/consuming/handler.ts";
import { Subscription, type Handling } from "../queue/consuming/subscription.ts";
import { Iteration } from "../queue/consuming/iteration.ts";
import type { OpenQueue } from "../partitions/open-queue.ts";
import type { PlainReach } from "../partitions/reach.ts";
import type { Taken } from "../ready/pops.ts";
import type { ReadyList } from "../ready/ready-list.ts";
import {
  checkBatch,
  checkSubscribe,
  checkTakeMany,
  type BatchOptions,
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
   * Takes up to `limit` messages, oldest first, as soon as there is at least one. Returns none if none came within `timeout`. With
   * `wait` it then waits for more, until there are `limit` or that time is over. The messages have left Redis by then: if the
   * process dies, they are lost. If the call is aborted, all return to the head of the queue; if the client closes, it returns what
   * it has.
   *
   * Messages that the codec cannot read are left out, put into the quarantine, and reported by an `error` event.
   *
   * @throws {RangeError | TypeError} if an option is not legal.
   * @throws the signal's reason, if it is aborted.
   */
  async takeMany(options: TakeManyOptions): Promise<T[]> {
    const { limit, timeout = Infinity, wait = 0, signal } = checkTakeMany(options);
    signal?.throwIfAborted();
    const giveBack = (batch: readonly Taken[]) => void this.#reach.ready.putBack(batch);
    return await this.#traced(() =>
      this.#takeBatch(limit, { signal, timeout, wait }, giveBack).then((batch) =>
        this.#decodeAll(batch),
      ),
    );
  }

  /**
   * Takes a message from this queue or, in order, from the first of `queues` that has one; each is a name, a definition
   * or a handle. Waits up to `timeout` milliseconds; 0 does not wait. Returns undefined if no message came.
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
    const open = [this.#open, ...names.map((name) => this.#openNamed(name))];
    const wait = { ...call, timeout };
    const lists = open.map(({ plain }) => plain.ready.onlyList);
    const [taken] = await this.#traced(
      async () => {
        const found = await this.#takeFromAny(wait, lists, [this.name, ...names]);
        if (found === undefined) return [];
        (open[found.at] as OpenQueue).counters.taken++;
        const payload = await this.#payloads.decodeTaken(found.payload);
        return [{ queue: found.queue, payload }];
      },
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
    const handle = this.#handlingBy(handler, onError, () => ONE);
    // A block returns one message, so each handler has a loop of its own; see `PopRhythm`.
    return this.#subscribe({
      take: (wait) => this.#takeOne(wait),
      handle,
      concurrency,
      perLoop: 1,
    });
  }

  /**
   * Calls `handler` with up to `limit` payloads at a time: as many as are there, or with `wait` as many as come within that time of
   * the first. They have left Redis while the batch waits and its handler runs: if the process dies, they are lost. When the
   * subscription closes, a waiting batch returns to the head of the queue. Otherwise like {@link subscribe}.
   *
   * @throws {RangeError | TypeError} if `handler` is not a function, or an option is not legal.
   */
  subscribeBatch(handler: PlainBatchHandler<T>, options: BatchOptions<readonly T[]>): Subscription {
    checkFunction("handler", handler);
    const { limit, wait, concurrency, onError } = checkBatch(options);
    const take = async (within: WaitOptions) => {
      // The subscription ends only when they are back.
      const giveBack = (batch: readonly Taken[]) => this.#reach.ready.putBack(batch);
      const batch = await this.#takeBatch(limit, { ...within, wait }, giveBack);
      const payloads = await this.#decodeAll(batch);
      return payloads.length === 0 ? [] : [payloads];
    };
    const handle = this.#handlingBy<readonly T[]>(handler, onError, (payloads) =>
      payloads.map(() => PLAIN_MESSAGE),
    );
    // Batches are filled one by one, so none waits for what another has.
    return this.#subscribe({ take, handle, concurrency, perLoop: concurrency });
  }

  /**
   * Takes messages one by one, until the client is closed: `for await (const order of queue)`.
   *
   * The client's `close()` waits for the body of the loop until it asks for the next message, or leaves by `break`,
   * `return` or a throw. The body may still offer. An iterator that was advanced by hand and then dropped looks like a
   * body that runs for ever: call its `return()`, or limit the wait by `close({ handlerTimeout })`.
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
    const taken: Taken[] = [];
    while (taken.length < limit) {
      const wanted = Math.min(limit - taken.length, DRAIN_BATCH);
      const batch = await this.#reach.ready.pop(wanted, call).catch((error: unknown) => {
        // Earlier batches have left Redis: return them rather than lose them.
        if (taken.length > 0) return [];
        throw error;
      });
      taken.push(...batch);
      if (batch.length < wanted) break;
    }
    return await this.#decodeAll(taken);
  }

  /** Takes a batch as {@link takeBatch} does. A message that leaves Redis counts as taken when it is handed out. */
  #takeBatch(
    limit: number,
    options: BatchWait,
    giveBack: BatchSource<Taken>["giveBack"],
  ): Promise<readonly Taken[]> {
    return takeBatch(limit, options, {
      take: (max, wait) =>
        wait.timeout === 0
          ? this.#reach.ready.pop(max, { signal: wait.signal })
          : this.#reach.ready.take(max, wait),
      roomIn: (batch) => limit - batch.length,
      giveBack,
      endsWhole: true,
    });
  }

  /** Decodes and counts what is handed out. */
  async #decodeAll(taken: readonly Taken[]): Promise<T[]> {
    this.#open.counters.taken += taken.length;
    return await this.#payloads.decodeAllTaken(taken.map(({ payload }) => payload));
  }

  /** Waits for one message; returns none if none came within the timeout. */
  async #takeOne(wait: WaitOptions): Promise<T[]> {
    return await this.#decodeOne(await this.#reach.ready.take(1, wait));
  }

  /** Takes one message without waiting, if there is one. */
  async #popOne(call: Call | undefined): Promise<T[]> {
    return await this.#decodeOne(await this.#reach.ready.pop(1, call));
  }

  async #decodeOne([taken]: readonly Taken[]): Promise<T[]> {
    if (taken === undefined) return [];
    this.#open.counters.taken++;
    return [await this.#payloads.decodeTaken(taken.payload)];
  }

  /** Takes a payload from one of these LISTs, each of the queue with the name at its place. */
  async #takeFromAny(
    wait: WaitOptions,
    lists: readonly ReadyList[],
    names: readonly string[],
  ): Promise<{ at: number; queue: string; payload: Buffer } | undefined> {
    if (wait.timeout === 0) {
      for (const [at, list] of lists.entries()) {
        const [taken] = await list.pop(1, wait);
        if (taken !== undefined) return { at, queue: names[at] as string, payload: taken.payload };
      }
      return undefined;
    }
    const [first, ...others] = lists as readonly [ReadyList, ...ReadyList[]];
    const [taken] = await first.takeAny(1, wait, others);
    if (taken === undefined) return undefined;
    const queue = taken.source.ready;
    return { at: Math.max(0, names.indexOf(queue)), queue, payload: taken.payload };
  }

  /** Takes messages, traced if the tracing channel has subscribers. */
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

  /**
   * Returns a function that runs a handler on its input, counts the outcome, and reports a failure. It never rejects. `messagesOf`
   * describes the messages in events.
   */
  #handlingBy<Input>(
    handler: (input: Input, context: HandlerContext) => unknown,
    onError: OnHandlerError<Input> | undefined,
    messagesOf: (input: Input) => HandleEvent["messages"],
  ): (input: Input, closing: AbortSignal) => Promise<void> {
    const { queue, counters } = this.#open;
    return async (input, closing) => {
      const context = { signal: closing };
      const startedAt = queueTime.now();
      try {
        await (handlings.hasSubscribers
          ? tracedHandling(() => handler(input, context), counters, {
              group: undefined,
              messages: messagesOf(input),
            })
          : handler(input, context));
        counters.handlerEnded(startedAt);
      } catch (error) {
        counters.handlerEnded(startedAt);
        if (!isCutShortBy(closing, error)) counters.failed++;
        await reportFailure(error, input, { queue: this.name, onError, report: queue.report });
      }
    };
  }

  #subscribe<Item>({
    handle,
    ...how
  }: Pick<Handling<Item>, "take" | "concurrency" | "perLoop"> & {
    readonly handle: (item: Item, closing: AbortSignal) => Promise<void>;
  }): Subscription {
    this.#reach.ready.checkTaking();
    const { queue, joinTakes } = this.#open;
    const { name } = this;
    return this.#attend(
      new Subscription({
        queue: name,
        report: queue.report,
        takes: joinTakes(),
        handle,
        awaits: handle,
        ...how,
      }),
    );
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

const ONE = [PLAIN_MESSAGE];

const POLL = { call: "poll(timeout, options)", endless: "use take" };
