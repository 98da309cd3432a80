import { ClosedError, type DelaylineError } from "../errors.ts";
import { clearReady } from "../lua/ready/clear-ready.ts";
import { asNumber } from "../lua/script.ts";
import type { Queue } from "../queue/queue.ts";
import type { Connections } from "../redis/connections.ts";
import type { Taken } from "./blocking-connection.ts";
import { Taker } from "./taker.ts";
import type { WaitOptions } from "./waiters.ts";

/**
 * The ready messages of one queue, as bytes. There is one such object per queue and client, however
 * many handles there are: all who wait share a connection.
 *
 * Arguments have been checked. Every method rejects with `ClosedError` once the queue is closed, and
 * with `RedisError` if Redis refuses a command or its reply is lost.
 */
export class ReadyList {
  readonly #queue: Queue;
  readonly #shared: {
    readonly connections: Connections;
    readonly report: (error: DelaylineError) => void;
    readonly closeTimeout: number;
  };
  /** By the names of the queues that are waited for together. */
  readonly #takers = new Map<string, Taker>();
  #isClosed = false;

  constructor(
    queue: Queue,
    shared: {
      readonly connections: Connections;
      readonly report: (error: DelaylineError) => void;
      readonly closeTimeout: number;
    },
  ) {
    this.#queue = queue;
    this.#shared = shared;
  }

  /** @throws {ClosedError} once {@link close} was called, when running handlers may still offer. */
  checkTaking(): void {
    if (this.#isClosed) throw new ClosedError("the client");
  }

  /** @throws {ClosedError} once the queue refuses every call. */
  checkOpen(): void {
    this.#queue.checkOpen();
  }

  /**
   * Waits for payloads of this queue, `max` at most, or of others where it has none; see
   * {@link Taker.wait}.
   */
  async take(
    max: number,
    options: WaitOptions,
    others: readonly ReadyList[] = [],
  ): Promise<readonly Taken[]> {
    return await this.#taker(others).wait(max, options);
  }

  /** Takes payloads that are there, `max` at most, without waiting. */
  async pop(max: number): Promise<readonly Buffer[]> {
    const payloads = await this.#queue.callOnce("take from", (redis, { ready }) =>
      redis.lpopBuffer(ready, max),
    );
    return payloads ?? [];
  }

  /** Puts payloads at the end. If it is sent a second time they are there twice. */
  async push(payloads: readonly Buffer[]): Promise<void> {
    await this.#queue.call("put into", (redis, { ready }) => redis.rpush(ready, ...payloads));
  }

  /** The oldest payload, which stays there; undefined if there is none. */
  async peek(): Promise<Buffer | undefined> {
    const payload = await this.#queue.call("look at", (redis, { ready }) =>
      redis.lindexBuffer(ready, 0),
    );
    return payload ?? undefined;
  }

  async size(): Promise<number> {
    return asNumber(await this.#queue.call("measure", (redis, { ready }) => redis.llen(ready)));
  }

  /** All payloads, oldest first, which stay there. */
  readAll(): Promise<Buffer[]> {
    return this.#queue.call("read", (redis, { ready }) => redis.lrangeBuffer(ready, 0, -1));
  }

  /** Drops all; returns how many. */
  clear(): Promise<number> {
    return this.#queue.change("clear", clearReady, {});
  }

  /** Ends every wait; resolves when nothing is in hand any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#takers.values()].map((taker) => taker.close()));
  }

  #taker(others: readonly ReadyList[]): Taker {
    this.checkTaking();
    const sources = [this, ...others].map((list) => list.#queue.keys);
    const names = JSON.stringify(sources.map(({ ready }) => ready));
    let taker = this.#takers.get(names);
    if (taker === undefined) {
      taker = new Taker(sources, this.#shared);
      this.#takers.set(names, taker);
    }
    return taker;
  }
}
