import { ClosedError, type DelaylineError } from "../errors.ts";
import { clearReady } from "../lua/ready/clear-ready.ts";
import { pushReady } from "../lua/ready/push-ready.ts";
import { asNumber } from "../lua/reply.ts";
import type { Pauses } from "../queue/pause-watch.ts";
import type { QueueKeys } from "../queue/keys.ts";
import type { Queue } from "../queue/queue.ts";
import type { OnConnected } from "../redis/blocking-client.ts";
import type { RedisClient } from "../redis/client.ts";
import type { Connections } from "../redis/connections.ts";
import type { Taken } from "./blocking-connection.ts";
import type { Troubles } from "../redis/troubles.ts";
import type { PausableSource } from "./open-sources.ts";
import { Taker } from "./taker.ts";
import type { WaitOptions } from "../queue/consuming/waiters.ts";

/** What a handle asks of the ready messages of its queue, which may be in many partitions. */
export type ReadyFace = Omit<Pick<ReadyList, keyof ReadyList>, "exclusive">;

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
    readonly pauses: Pauses;
    readonly report: (error: DelaylineError) => void;
    readonly troubles: Troubles;
    readonly closeTimeout: number;
  };
  /** By the names of the queues that are waited for together. */
  readonly #takers = new Map<string, Taker>();
  /** Those that belong to somebody else. */
  readonly #exclusive = new Set<Taker>();
  #isClosed = false;

  constructor(
    queue: Queue,
    shared: {
      readonly connections: Connections;
      readonly pauses: Pauses;
      readonly report: (error: DelaylineError) => void;
      readonly troubles: Troubles;
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
    const taken = await this.#taker(others).wait(max, options);
    if (others.length === 0) this.#queue.counters.taken += taken.length;
    else this.#countEach(taken, others);
    return taken;
  }

  /**
   * Makes a taker of its own for this list, over a connection of its own; `onConnected` is as a taker knows it.
   * Who has it may close it; {@link close} does otherwise.
   */
  exclusive(onConnected: OnConnected): Taker {
    this.checkTaking();
    for (const taker of this.#exclusive) if (taker.isClosed) this.#exclusive.delete(taker);
    const taker = new Taker([this.#source], this.#shared, { onConnected });
    this.#exclusive.add(taker);
    return taker;
  }

  /**
   * Takes payloads that are there, `max` at most, without waiting; none while the queue is paused. What
   * arrives after the call was given up goes back.
   */
  async pop(max: number, signal?: AbortSignal): Promise<readonly Buffer[]> {
    const { pauses } = this.#shared;
    const take = async (redis: RedisClient, { ready }: QueueKeys) => {
      if (pauses.isPaused === undefined) await pauses.known();
      return pauses.isPaused ? [] : await redis.lpopBuffer(ready, max);
    };
    const onLate = (payloads: Buffer[] | null) => {
      this.#taker([]).putBack(
        (payloads ?? []).map((payload) => ({ payload, source: this.#source })),
      );
    };
    const taken = (await this.#queue.callOnce("take from", take, { signal, onLate })) ?? [];
    this.#queue.counters.taken += taken.length;
    return taken;
  }

  /** Counts messages where they were taken from. */
  #countEach(taken: readonly Taken[], others: readonly ReadyList[]): void {
    for (const { source } of taken) {
      const from = others.find((list) => list.#queue.keys.ready === source.ready) ?? this;
      from.#queue.counters.taken++;
    }
  }

  /**
   * Puts payloads at the end. If it is sent a second time they are there twice. Of a partition: `knownFact` is what
   * was known when it was chosen; see {@link Queue.run}.
   */
  async push(payloads: readonly Buffer[], signal?: AbortSignal, knownFact?: string): Promise<void> {
    if (knownFact !== undefined) {
      const rows = payloads.map((payload) => ({ payload }));
      await this.#queue.read("put into", pushReady, {}, { rows, signal, knownFact });
    } else {
      await this.#queue.call(
        "put into",
        (redis, { ready }) => redis.rpush(ready, ...payloads),
        signal,
      );
    }
    this.#queue.counters.offered += payloads.length;
  }

  /** The oldest payload, which stays there; undefined if there is none. */
  async peek(signal?: AbortSignal): Promise<Buffer | undefined> {
    const payload = await this.#queue.call(
      "look at",
      (redis, { ready }) => redis.lindexBuffer(ready, 0),
      signal,
    );
    return payload ?? undefined;
  }

  async size(signal?: AbortSignal): Promise<number> {
    return asNumber(
      await this.#queue.call("measure", (redis, { ready }) => redis.llen(ready), signal),
    );
  }

  /** All payloads, oldest first, which stay there. */
  readAll(signal?: AbortSignal): Promise<Buffer[]> {
    return this.#queue.call("read", (redis, { ready }) => redis.lrangeBuffer(ready, 0, -1), signal);
  }

  /** Drops all; returns how many. */
  clear(signal?: AbortSignal): Promise<number> {
    return this.#queue.change("clear", clearReady, {}, { signal });
  }

  /** Ends every wait; resolves when nothing is in hand any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const takers = [...this.#takers.values(), ...this.#exclusive];
    await Promise.all(takers.map((taker) => taker.close()));
  }

  get #source(): PausableSource {
    const { ready, receipts } = this.#queue.keys;
    return { ready, receipts, pauses: this.#shared.pauses };
  }

  #taker(others: readonly ReadyList[]): Taker {
    this.checkTaking();
    const sources = [this, ...others].map((list) => list.#source);
    const names = JSON.stringify(sources.map(({ ready }) => ready));
    let taker = this.#takers.get(names);
    if (taker === undefined) {
      taker = new Taker(sources, this.#shared);
      this.#takers.set(names, taker);
    }
    return taker;
  }
}
