import { ClosedError, type DelaylineError } from "../errors.ts";
import { checkDuration, checkWhole } from "../queue/checks.ts";
import type { Payloads } from "../queue/payloads.ts";
import { Subscription, type Handler } from "../queue/subscription.ts";
import type { ReadyList } from "./ready-list.ts";

/** Options of `take`. */
export interface TakeOptions {
  /** Ends the wait; the promise then rejects with the signal's reason. No message is lost. */
  readonly signal?: AbortSignal;
}

/** Options of `takeMany`. */
export interface TakeManyOptions extends TakeOptions {
  /** How many messages at most, 1 to 10,000. */
  readonly max: number;
  /** How long to wait for the first, in milliseconds; 0: not at all. Defaults to no limit. */
  readonly timeout?: number;
}

/** Options of `subscribe`. */
export interface SubscribeOptions {
  /** How many handlers may run at once. Each may hold one message. Defaults to 1. */
  readonly concurrency?: number;
}

/** A payload, and the queue it came from. */
export interface FromQueue<T> {
  readonly queue: string;
  readonly payload: T;
}

/** What a {@link BlockingQueue} needs of the client that made it. */
interface Host {
  /** The subscriptions that are waited for when the client closes. */
  readonly subscriptions: Set<Subscription>;
  readonly report: (error: DelaylineError) => void;
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
export class BlockingQueue<T = unknown> {
  /** The queue's name, which is also the Redis key of its ready messages. */
  readonly name: string;
  readonly #list: ReadyList;
  readonly #payloads: Payloads<T>;
  readonly #host: Host;

  /** @internal Use `Delayline.getBlockingQueue`. */
  constructor(name: string, list: ReadyList, payloads: Payloads<T>, host: Host) {
    this.name = name;
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
   * @throws {DecodeError} if the codec cannot read the message; its bytes are in the quarantine.
   */
  async take({ signal }: TakeOptions = {}): Promise<T> {
    for (;;) {
      const [taken] = await this.#list.take(1, { signal, timeout: Infinity });
      if (taken !== undefined) return await this.#payloads.decodeTaken(taken.payload);
    }
  }

  /**
   * Takes a message if there is one, or if one comes within `timeout` milliseconds (fractions are
   * honoured). Without a timeout, or with 0, it does not wait. Returns undefined if none came.
   *
   * @throws {RangeError | TypeError} if `timeout` is not a number, negative or not finite.
   * @throws {DecodeError} if the codec cannot read the message; its bytes are in the quarantine.
   */
  async poll(timeout = 0): Promise<T | undefined> {
    checkDuration("timeout", timeout);
    if (timeout === 0) {
      const [payload] = await this.#list.pop(1);
      return payload && (await this.#payloads.decodeTaken(payload));
    }
    const [taken] = await this.#list.take(1, { timeout });
    return taken && (await this.#payloads.decodeTaken(taken.payload));
  }

  /**
   * Takes up to `max` messages, oldest first, as soon as there is at least one. Returns none if
   * nothing came within `timeout`.
   *
   * What the codec cannot read is left out, put into the quarantine, and reported by an `error` event.
   *
   * @throws {RangeError | TypeError} if `max` or `timeout` is out of its range.
   * @throws the signal's reason, if it is aborted.
   */
  async takeMany({ max, timeout, signal }: TakeManyOptions): Promise<T[]> {
    checkWhole("max", max, 1, MAX_AT_ONCE);
    if (timeout !== undefined) checkDuration("timeout", timeout);
    signal?.throwIfAborted();
    if (timeout === 0) return await this.#payloads.decodeAllTaken(await this.#list.pop(max));
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
  async pollFromAny(names: readonly string[], timeout = 0): Promise<FromQueue<T> | undefined> {
    checkDuration("timeout", timeout);
    const others = names.map((name) => this.#host.listNamed(name));
    if (timeout === 0) {
      for (const [i, list] of [this.#list, ...others].entries()) {
        const [payload] = await list.pop(1);
        if (payload === undefined) continue;
        const queue = names[i - 1] ?? this.name;
        return { queue, payload: await this.#payloads.decodeTaken(payload) };
      }
      return undefined;
    }
    const [taken] = await this.#list.take(1, { timeout }, others);
    if (taken === undefined) return undefined;
    return {
      queue: taken.source.ready,
      payload: await this.#payloads.decodeTaken(taken.payload),
    };
  }

  /**
   * Calls `handler` with each message, until the subscription or the client is closed.
   *
   * A handler that throws or rejects is reported by an `error` event, and the next message follows;
   * its own message is gone (at most once). A message that the codec cannot read is put into the
   * quarantine and reported likewise.
   *
   * @throws {RangeError | TypeError} if `concurrency` is no whole number from 1 to 10,000.
   */
  subscribe(handler: Handler<T>, { concurrency = 1 }: SubscribeOptions = {}): Subscription {
    if (typeof handler !== "function") {
      throw new TypeError(`handler must be a function, got ${typeof handler}`);
    }
    checkWhole("concurrency", concurrency, 1, MAX_AT_ONCE);
    this.#list.checkTaking();
    const subscription = new Subscription(
      this.name,
      (signal) => this.take({ signal }),
      handler,
      concurrency,
      this.#host.report,
    );
    const { subscriptions } = this.#host;
    subscriptions.add(subscription);
    void subscription.ended.then(() => subscriptions.delete(subscription));
    return subscription;
  }

  /** Takes messages one by one, until the client is closed: `for await (const order of queue)`. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    for (;;) {
      let payload: T;
      try {
        payload = await this.take();
      } catch (error) {
        if (error instanceof ClosedError) return;
        throw error;
      }
      yield payload;
    }
  }

  /**
   * Puts a message at the end of the ready messages, without a delay.
   *
   * If the connection is lost before the reply comes, ioredis may send it again, and it may be there
   * twice: a ready message has no id. `DelayedQueue.offer` with a delay of 0 is stored once.
   *
   * @throws {EncodeError | PayloadTooLargeError} if the payload has no legal form; nothing was sent.
   */
  async put(payload: T): Promise<void> {
    await this.putMany([payload]);
  }

  /** Puts messages at the end of the ready messages, in this order. Otherwise as {@link put}. */
  async putMany(payloads: Iterable<T>): Promise<void> {
    this.#list.checkOpen();
    const encoded = Array.from(payloads, (payload) => this.#payloads.encode(payload));
    for (let i = 0; i < encoded.length; i += PUT_BATCH) {
      await this.#list.push(encoded.slice(i, i + PUT_BATCH));
    }
  }

  /** The oldest ready payload, which stays there; undefined if there is none. */
  async peek(): Promise<T | undefined> {
    const payload = await this.#list.peek();
    return payload && this.#payloads.decode(payload);
  }

  /** How many messages are ready. O(1). */
  async size(): Promise<number> {
    return await this.#list.size();
  }

  /**
   * All ready payloads, oldest first, which stay there. One snapshot: O(N) in a single command.
   *
   * What the codec cannot read is left out, and reported by an `error` event.
   */
  async readAll(): Promise<T[]> {
    return this.#payloads.decodeAll(await this.#list.readAll());
  }

  /**
   * Takes everything that is ready, or up to `max` messages, without waiting.
   *
   * What the codec cannot read is left out, put into the quarantine, and reported by an `error` event.
   */
  async drain(max: number = Number.MAX_SAFE_INTEGER): Promise<T[]> {
    checkWhole("max", max, 0, Number.MAX_SAFE_INTEGER);
    this.#list.checkOpen();
    const payloads: Buffer[] = [];
    while (payloads.length < max) {
      const wanted = Math.min(max - payloads.length, DRAIN_BATCH);
      const batch = await this.#list.pop(wanted);
      payloads.push(...batch);
      if (batch.length < wanted) break;
    }
    return await this.#payloads.decodeAllTaken(payloads);
  }

  /** Drops all ready messages; returns how many. Those that are still delayed stay. */
  async clear(): Promise<number> {
    return await this.#list.clear();
  }
}

/** The most that one call takes: what a single pop may cost Redis. */
const MAX_AT_ONCE = 10_000;
const DRAIN_BATCH = 1000;
const PUT_BATCH = 100;
