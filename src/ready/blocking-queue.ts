import type { DelaylineError } from "../errors.ts";
import {
  callSignal,
  checkDuration,
  checkFunction,
  checkIterable,
  checkWhole,
} from "../queue/checks.ts";
import type { Consumer } from "../queue/consumer.ts";
import type { CallOptions } from "../queue/options.ts";
import type { Payloads } from "../queue/payloads.ts";
import { QueueHandle, type HandleOptions } from "../queue/queue-handle.ts";
import { tellFailure, type Handler } from "../queue/handler.ts";
import { Subscription } from "../queue/subscription.ts";
import type { Work } from "../redis/troubles.ts";
import { exclusiveHandling } from "./exclusive-handling.ts";
import type { ExclusiveTaking } from "./exclusive-take.ts";
import { Iteration } from "../queue/iteration.ts";
import type { ReadyFace, ReadyList } from "./ready-list.ts";
import {
  checkExclusiveSubscribe,
  checkSubscribe,
  checkTakeMany,
  type SubscribeOptions,
  type TakeManyOptions,
  type TakeOptions,
} from "../queue/take-options.ts";
import type { WaitOptions } from "../queue/waiters.ts";

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
export class BlockingQueue<T = unknown> extends QueueHandle {
  readonly #list: ReadyFace;
  readonly #payloads: Payloads<T>;
  readonly #host: Host;

  /** @internal Use `Delayline.getBlockingQueue`. */
  constructor(open: HandleOptions, list: ReadyFace, payloads: Payloads<T>, host: Host) {
    super(open);
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
      const taken = await this.#takeOne({ signal, timeout: Infinity });
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
    if (timeout === 0) {
      const [payload] = await this.#list.pop(1, signal);
      return payload && (await this.#payloads.decodeTaken(payload));
    }
    const [taken] = await this.#list.take(1, { timeout, signal });
    return taken && (await this.#payloads.decodeTaken(taken.payload));
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
    if (timeout === 0)
      return await this.#payloads.decodeAllTaken(await this.#list.pop(max, signal));
    const taken = await this.#list.take(max, { signal, timeout: timeout ?? Infinity });
    return await this.#payloads.decodeAllTaken(taken.map(({ payload }) => payload));
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
    if (timeout === 0) {
      for (const [i, list] of [this.#list, ...others].entries()) {
        const [payload] = await list.pop(1, signal);
        if (payload === undefined) continue;
        const queue = names[i - 1] ?? this.name;
        return { queue, payload: await this.#payloads.decodeTaken(payload) };
      }
      return undefined;
    }
    const [taken] = await this.#list.take(1, { timeout, signal }, others);
    if (taken === undefined) return undefined;
    return {
      queue: taken.source.ready,
      payload: await this.#payloads.decodeTaken(taken.payload),
    };
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
    const { takes, report } = this.#host;
    const take = (wait: WaitOptions) => this.#takeOne(wait);
    const host = { queue: this.name, onError, report };
    const { exclusive } = this.#host;
    if (exclusive !== undefined) {
      checkExclusiveSubscribe(this.name, options);
      const handling = exclusiveHandling(handler, this.#payloads, { ...host, takes, exclusive });
      return this.#attend(new Subscription(handling));
    }
    const handle = async (payload: T, closing: AbortSignal) => {
      try {
        await handler(payload, { signal: closing });
      } catch (error) {
        await tellFailure(error, payload, host);
      }
    };
    const handling = { queue: this.name, take, takes, handle, concurrency, report };
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
   * Puts a message at the end of the ready messages, without a delay.
   *
   * If the connection is lost before the reply comes, ioredis may send it again, and it may be there
   * twice: a ready message has no id. `DelayedQueue.offer` with a delay of 0 is stored once.
   *
   * @throws {EncodeError | PayloadTooLargeError} if the payload has no legal form; nothing was sent.
   */
  async put(payload: T, options?: CallOptions): Promise<void> {
    await this.putMany([payload], options);
  }

  /** Puts messages at the end of the ready messages, in this order. Otherwise as {@link put}. */
  async putMany(payloads: Iterable<T>, options?: CallOptions): Promise<void> {
    checkIterable("payloads", payloads);
    const signal = callSignal(options);
    this.#list.checkOpen();
    const encoded = Array.from(payloads, (payload) => this.#payloads.encode(payload));
    for (let i = 0; i < encoded.length; i += PUT_BATCH) {
      await this.#list.push(encoded.slice(i, i + PUT_BATCH), signal);
    }
  }

  /** The oldest ready payload, which stays there; undefined if there is none. */
  async peek(options?: CallOptions): Promise<T | undefined> {
    const payload = await this.#list.peek(callSignal(options));
    return payload && this.#payloads.decode(payload);
  }

  /** How many messages are ready. O(1). */
  async size(options?: CallOptions): Promise<number> {
    return await this.#list.size(callSignal(options));
  }

  /**
   * All ready payloads, oldest first, which stay there. One snapshot: O(N) in a single command.
   *
   * What the codec cannot read is left out, and reported by an `error` event.
   */
  async readAll(options?: CallOptions): Promise<T[]> {
    return this.#payloads.decodeAll(await this.#list.readAll(callSignal(options)));
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

  /** Drops all ready messages; returns how many. Those that are still delayed stay. */
  async clear(options?: CallOptions): Promise<number> {
    return await this.#list.clear(callSignal(options));
  }

  /** Takes one message, or none if none came within the timeout. */
  async #takeOne(wait: WaitOptions): Promise<T[]> {
    const [taken] = await this.#list.take(1, wait);
    return taken === undefined ? [] : [await this.#payloads.decodeTaken(taken.payload)];
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
const PUT_BATCH = 100;
