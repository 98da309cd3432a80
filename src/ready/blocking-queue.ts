import type { DelaylineError } from "../errors.ts";
import type { Counters } from "../observe/counters.ts";
import { PLAIN_MESSAGE, takes, tracedQuietly, type TakeEvent } from "../observe/events.ts";
import { callSignal, checkDuration, checkFunction, checkWhole } from "../queue/checks.ts";
import type { Consumer } from "../queue/consuming/consumer.ts";
import type { CallOptions } from "../queue/options.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { HandleOptions } from "../queue/queue-handle.ts";
import type { Handler } from "../queue/consuming/handler.ts";
import { Subscription } from "../queue/consuming/subscription.ts";
import type { Work } from "../redis/troubles.ts";
import { exclusiveHandling } from "./exclusive-handling.ts";
import type { ExclusiveTaking } from "./exclusive-take.ts";
import { Iteration } from "../queue/consuming/iteration.ts";
import { handle } from "./handling.ts";
import { ReadyHandle } from "./ready-handle.ts";
import type { ReadyFace, ReadyList } from "./ready-list.ts";
import {
  checkExclusiveSubscribe,
  checkSubscribe,
  checkTakeMany,
  type SubscribeOptions,
  type TakeManyOptions,
  type TakeOptions,
} from "../queue/consuming/take-options.ts";
import type { WaitOptions } from "../queue/consuming/waiters.ts";

/** A payload, and the queue it came from. */
export interface FromQueue<T> {
  readonly queue: string;
  readonly payload: T;
}

/** What a {@link BlockingQueue} needs of the client that made it. */
interface Host {
  /** Those that are waited for when the client closes. */
  readonly consumers: Set<Consumer>;
  /** How the takes of subscriptions get on: nobody awaits them. */
  readonly takes: Work;
  readonly report: (error: DelaylineError) => void;
  /** How messages are taken, if the handle consumes exclusively. */
  readonly exclusive?: ExclusiveTaking | undefined;
  /** Another queue of the client; opens it. */
  readonly listNamed: (name: string) => ReadyList;
}

/**
 * The ready side of a queue: messages that are due, for consumers to take, oldest deadline first.
 *
 * Consumption is at most once, as in Redisson: a message leaves Redis when it is taken, and a
 * consumer that dies afterwards, or whose connection is cut while the reply is under way, has lost
 * it. All takers of a queue in one process share one blocking connection. Made by
 * `Delayline.getBlockingQueue`, which also keeps the transfer running.
 *
 * `null` is a payload like any other. "No message" is `undefined`, which therefore no built-in codec
 * decodes to: an `undefined` that is offered comes back as `null`.
 *
 * Methods that wait survive a lost connection: it is reported by an `error` event, and the wait goes
 * on. Otherwise every method rejects with {@link RedisError} if Redis refuses a command or its reply
 * is lost, and with {@link ClosedError} after `close()`.
 */
export class BlockingQueue<T = unknown> extends ReadyHandle<T> {
  readonly #list: ReadyFace;
  readonly #payloads: Payloads<T>;
  readonly #host: Host;
  readonly #counters: Counters;

  /** @internal Use `Delayline.getBlockingQueue`. */
  constructor(open: HandleOptions, list: ReadyFace, payloads: Payloads<T>, host: Host) {
    super(open, list, payloads);
    this.#counters = open.counters;
    this.#list = list;
    this.#payloads = payloads;
    this.#host = host;
  }

  /**
   * Waits for a message and takes it.
   *
   * Who waits first in this process is served first. Aborting loses nothing: a message that arrives
   * at that moment goes back to the head of the queue.
   *
   * @throws the signal's reason, if it is aborted.
   * @throws {TypeError} if an option is not legal.
   * @throws {DecodeError} if the codec cannot read the message; its bytes are in the quarantine.
   */
  async take(options: TakeOptions = {}): Promise<T> {
    const signal = callSignal(options, "take option");
    for (;;) {
      const taken = await this.#told(() => this.#takeOne({ signal, timeout: Infinity }));
      if (taken.length > 0) return taken[0] as T;
    }
  }

  /**
   * Takes a message if there is one, or if one comes within `timeout` milliseconds (fractions are
   * honoured). Without a timeout, or with 0, it does not wait. Returns undefined if none came.
   *
   * @throws {RangeError | TypeError} if `timeout` is not a number, negative or not finite.
   * @throws the signal's reason, if it is aborted. No message is lost.
   * @throws {DecodeError} if the codec cannot read the message; its bytes are in the quarantine.
   */
  async poll(timeout = 0, options?: CallOptions): Promise<T | undefined> {
    checkDuration("timeout", timeout);
    const signal = callSignal(options);
    const [taken] = await this.#told(() =>
      timeout === 0 ? this.#popOne(signal) : this.#takeOne({ timeout, signal }),
    );
    return taken;
  }

  /**
   * Takes up to `max` messages, oldest first, as soon as there is at least one. Returns none if
   * nothing came within `timeout`.
   *
   * What the codec cannot read is left out, put into the quarantine, and reported by an `error` event.
   *
   * @throws {RangeError | TypeError} if an option is not legal.
   * @throws the signal's reason, if it is aborted.
   */
  async takeMany(options: TakeManyOptions): Promise<T[]> {
    const { max, timeout, signal } = checkTakeMany(options);
    signal?.throwIfAborted();
    return await this.#told(async () => {
      if (timeout === 0)
        return await this.#payloads.decodeAllTaken(await this.#list.pop(max, signal));
      const taken = await this.#list.take(max, { signal, timeout: timeout ?? Infinity });
      return await this.#payloads.decodeAllTaken(taken.map(({ payload }) => payload));
    });
  }

  /**
   * Waits for a message of this queue or of one of `names`, and takes it; if several have one, of the
   * first that has. Returns undefined if none came within `timeout` milliseconds; 0 does not wait.
   *
   * All need the same codec, and on Cluster the same slot. Each set of names that is ever polled costs
   * one connection, and from now on this process moves due messages of all of them, unless `transfer` is
   * false.
   *
   * @throws {TypeError} if one of the names cannot name a queue.
   */
  async pollFromAny(
    names: readonly string[],
    timeout = 0,
    options?: CallOptions,
  ): Promise<FromQueue<T> | undefined> {
    checkDuration("timeout", timeout);
    const signal = callSignal(options);
    if (!Array.isArray(names)) throw new TypeError(`names must be an array, got ${typeof names}`);
    const others = names.map((name) => this.#host.listNamed(name));
    const wait = { timeout, signal };
    const [taken] = await this.#told(
      () => this.#takeFromAny(wait, others, names),
      ({ queue }) => queue,
    );
    return taken;
  }

  /**
   * Calls `handler` with each message, until the subscription or the client is closed.
   *
   * A handler that throws or rejects is reported by an `error` event, or given to `onError`, and the
   * next message follows; its own message is gone (at most once). A message that the codec cannot read
   * is put into the quarantine and reported likewise.
   *
   * @throws {RangeError | TypeError} if `handler` is no function, or an option is not legal.
   */
  subscribe(handler: Handler<T>, options: SubscribeOptions<T> = {}): Subscription {
    checkFunction("handler", handler);
    const { concurrency, onError } = checkSubscribe(options);
    this.#list.checkTaking();
    const { takes: work, report, exclusive } = this.#host;
    const take = (wait: WaitOptions) => this.#takeOne(wait);
    const host = { queue: this.name, onError, report, counters: this.#counters };
    if (exclusive !== undefined) {
      checkExclusiveSubscribe(this.name, options);
      const handling = exclusiveHandling(handler, this.#payloads, {
        ...host,
        takes: work,
        exclusive,
      });
      return this.#attend(new Subscription(handling));
    }
    const run = (payload: T, closing: AbortSignal) =>
      handle(handler, payload, { signal: closing }, closing, host);
    const handling = { queue: this.name, take, takes: work, handle: run, concurrency, report };
    return this.#attend(new Subscription(handling));
  }

  /**
   * Takes messages one by one, until the client is closed: `for await (const order of queue)`.
   *
   * `close()` waits for the body of the loop, which may still offer: until it asks for the next message
   * or is left by `break`, `return` or a throw. An iterator that was asked by hand and then dropped looks
   * as if its body ran for ever: call its `return()`, or bound the wait by `close({ timeout })`.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    yield* this.#attend(new Iteration(() => this.take())).messages();
  }

  /**
   * Takes everything that is ready, or up to `max` messages, without waiting.
   *
   * What the codec cannot read is left out, put into the quarantine, and reported by an `error` event.
   */
  async drain(max: number = Number.MAX_SAFE_INTEGER, options?: CallOptions): Promise<T[]> {
    const signal = callSignal(options);
    checkWhole("max", max, 0, Number.MAX_SAFE_INTEGER);
    this.#list.checkOpen();
    return await this.#told(() => this.#drain(max, signal));
  }

  async #drain(max: number, signal: AbortSignal | undefined): Promise<T[]> {
    const payloads: Buffer[] = [];
    while (payloads.length < max) {
      const wanted = Math.min(max - payloads.length, DRAIN_BATCH);
      const batch = await this.#list.pop(wanted, signal).catch((error: unknown) => {
        // What has been taken is in nobody's hands but ours.
        if (payloads.length > 0) return [];
        throw error;
      });
      payloads.push(...batch);
      if (batch.length < wanted) break;
    }
    return await this.#payloads.decodeAllTaken(payloads);
  }

  /** Takes one message, or none if none came within the timeout. */
  async #takeOne(wait: WaitOptions): Promise<T[]> {
    const [taken] = await this.#list.take(1, wait);
    return taken === undefined ? [] : [await this.#payloads.decodeTaken(taken.payload)];
  }

  /** Takes one message that is there, or none. */
  async #popOne(signal: AbortSignal | undefined): Promise<T[]> {
    const [payload] = await this.#list.pop(1, signal);
    return payload === undefined ? [] : [await this.#payloads.decodeTaken(payload)];
  }

  async #takeFromAny(
    wait: WaitOptions,
    others: readonly ReadyList[],
    names: readonly string[],
  ): Promise<FromQueue<T>[]> {
    if (wait.timeout === 0) {
      for (const [i, list] of [this.#list, ...others].entries()) {
        const [payload] = await list.pop(1, wait.signal);
        if (payload === undefined) continue;
        const queue = names[i - 1] ?? this.name;
        return [{ queue, payload: await this.#payloads.decodeTaken(payload) }];
      }
      return [];
    }
    const [taken] = await this.#list.take(1, wait, others);
    if (taken === undefined) return [];
    const payload = await this.#payloads.decodeTaken(taken.payload);
    return [{ queue: taken.source.ready, payload }];
  }

  /** Takes messages, and tells who listens. */
  #told<Message>(take: () => Promise<Message[]>, queueOf?: (taken: Message) => string) {
    if (!takes.hasSubscribers) return take();
    // Which of several queues it comes from turns out at the end.
    const event: TakeEvent & { queue: string } = { queue: this.name, group: undefined };
    return tracedQuietly(takes, event, async () => {
      const taken = await take();
      if (taken.length > 0) event.queue = queueOf?.(taken[0] as Message) ?? this.name;
      event.messages = taken.map(() => PLAIN_MESSAGE);
      return taken;
    });
  }

  /** From now on the client's `close()` waits for it. */
  #attend<One extends Consumer>(consumer: One): One {
    const { consumers } = this.#host;
    consumers.add(consumer);
    void consumer.ended.then(() => consumers.delete(consumer));
    return consumer;
  }
}

const DRAIN_BATCH = 1000;
