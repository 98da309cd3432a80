import { ClosedError } from "../errors.ts";
import { clearReady, pushReady } from "../lua/ready/ready.ts";
import { asNumber } from "../lua/reply.ts";
import type { Call } from "../queue/call.ts";
import type { PauseState } from "../queue/pause-watch.ts";
import type { QueueKeys } from "../queue/keys.ts";
import type { Queue } from "../queue/queue.ts";
import type { RedisClient } from "../redis/client.ts";
import { PlainTakes } from "./plain-takes.ts";
import type { Taken } from "./pops.ts";
import type { PausableSource } from "./open-sources.ts";
import { Taker } from "./taker.ts";
import { Successor } from "../run/successor.ts";
import type { WaitOptions } from "../run/waiters.ts";

/** Ready messages, whether in one LIST or in those of several partitions. */
export type Ready = Omit<ReadyList, "takeAny" | "leaveTo" | "dismiss">;

/**
 * The ready messages of one part of a queue, as bytes.
 *
 * Callers check the arguments. Every method rejects with `ClosedError` once the queue is closed, and with `RedisError`
 * if Redis refuses a command or its reply is lost.
 */
export class ReadyList {
  readonly #queue: Queue;
  readonly #pauses: PauseState;
  /** For this LIST alone. */
  #own: Taker | undefined;
  /** By the LISTs that are waited for together. */
  readonly #takers = new Map<string, Taker>();
  /** The takers of other LISTs that also wait for this one. */
  readonly #joint = new Set<Taker>();
  readonly #plainTakes: PlainTakes;
  readonly #successor = new Successor<Taken>();
  #isClosed = false;

  constructor(
    queue: Queue,
    pauses: PauseState,
    plainTakes: PlainTakes = new PlainTakes(queue.name, queue.report),
  ) {
    this.#queue = queue;
    this.#pauses = pauses;
    this.#plainTakes = plainTakes;
  }

  /** @throws {ClosedError} once {@link close} was called; running handlers may still offer then. */
  checkTaking(): void {
    if (this.#isClosed) throw new ClosedError(`queue "${this.#queue.name}"`);
  }

  /** @throws {ClosedError} once the queue is closed. */
  checkOpen(): void {
    this.#queue.checkOpen();
  }

  /**
   * The only LIST of the queue.
   *
   * @throws {TypeError} if the queue is partitioned: its LISTs may be in other slots than those of other queues.
   */
  get onlyList(): ReadyList {
    return this;
  }

  /** Waits for up to `max` payloads; see {@link Taker.wait}. Callers count what they hand out. */
  async take(max: number, options: WaitOptions): Promise<readonly Taken[]> {
    this.checkTaking();
    this.#plainTakes.noteBegun();
    try {
      return await this.#successor.after(this.#take, max, options);
    } finally {
      this.#plainTakes.noteDone();
    }
  }

  readonly #take = (max: number, options: WaitOptions): Promise<readonly Taken[]> =>
    (this.#own ??= this.#taker([])).wait(max, options);

  /** Waits for up to `max` payloads of this LIST, or of `others` if it has none; see {@link Taker.wait}. */
  async takeAny(
    max: number,
    options: WaitOptions,
    others: readonly ReadyList[],
  ): Promise<readonly Taken[]> {
    const all = [this, ...others];
    for (const one of all) one.checkTaking();
    for (const one of all) one.#plainTakes.noteBegun();
    try {
      return await this.#taker(others).wait(max, options);
    } finally {
      for (const one of all) one.#plainTakes.noteDone();
    }
  }

  /** The queue was given partitions: waits for this LIST alone go on by `next`. */
  leaveTo(next: Ready): void {
    this.#successor.leave(
      (max, options) => next.take(max, options),
      (reason) => this.#own?.dismiss(reason),
    );
  }

  /**
   * Takes up to `max` payloads without waiting; none while the queue is paused. Payloads that arrive after the call was
   * given up are given back.
   */
  async pop(max: number, call?: Call): Promise<readonly Taken[]> {
    this.#plainTakes.noteBegun();
    return await this.#pop(max, call).finally(() => this.#plainTakes.noteDone());
  }

  async #pop(max: number, call?: Call): Promise<readonly Taken[]> {
    this.#queue.isUsed = true;
    const pauses = this.#pauses;
    const take = async (redis: RedisClient, { ready }: QueueKeys) => {
      if (pauses.isPaused === undefined) await pauses.known();
      return pauses.isPaused ? [] : await redis.lpopBuffer(ready, max);
    };
    const asTaken = (payloads: Buffer[] | null) =>
      (payloads ?? []).map((payload) => ({ payload, source: this.#source }));
    const onLate = (payloads: Buffer[] | null) => void this.putBack(asTaken(payloads));
    return asTaken((await this.#queue.callOnce("take from", take, { ...call, onLate })) ?? []);
  }

  /** Puts payloads back to the head, oldest first. Never rejects; resolves once this process holds none of them. */
  putBack(messages: readonly Taken[]): Promise<void> {
    return this.#taker([]).putBack(messages);
  }

  /** Puts payloads at the end. A push that is sent again stores them twice. */
  async push(payloads: readonly Buffer[], call?: Call): Promise<void> {
    this.#queue.isUsed = true;
    if (call?.knownFact !== undefined) {
      const rows = payloads.map((payload) => ({ payload }));
      await this.#queue.read("put into", pushReady, {}, { ...call, rows });
    } else {
      await this.#queue.call(
        "put into",
        (redis, { ready }) => redis.rpush(ready, ...payloads),
        call,
      );
    }
    this.#queue.counters.offered += payloads.length;
  }

  /** Returns the oldest payload without taking it; undefined if there is none. */
  async peek(call?: Call): Promise<Buffer | undefined> {
    const payload = await this.#queue.call(
      "look at",
      (redis, { ready }) => redis.lindexBuffer(ready, 0),
      call,
    );
    return payload ?? undefined;
  }

  async size(call?: Call): Promise<number> {
    return asNumber(
      await this.#queue.call("measure", (redis, { ready }) => redis.llen(ready), call),
    );
  }

  /** Returns all payloads, oldest first, without taking them. */
  readAll(call?: Call): Promise<Buffer[]> {
    return this.#queue.call("read", (redis, { ready }) => redis.lrangeBuffer(ready, 0, -1), call);
  }

  /** Drops all payloads; returns how many. */
  clear(call?: Call): Promise<number> {
    return this.#queue.change("clear", clearReady, {}, call);
  }

  /** Rejects every wait for this LIST, alone or together with others, with `reason`. */
  dismiss(reason: Error): void {
    for (const taker of [...this.#takers.values(), ...this.#joint]) taker.dismiss(reason);
  }

  /** Rejects every wait; resolves once this process holds no message. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#takers.values(), (taker) => taker.close()));
  }

  get #source(): PausableSource {
    const { ready, receipts } = this.#queue.keys;
    return { ready, receipts, pauses: this.#pauses };
  }

  #taker(others: readonly ReadyList[]): Taker {
    this.#queue.isUsed = true;
    const sources = [this, ...others].map((list) => list.#source);
    const names = JSON.stringify(sources.map(({ ready }) => ready));
    let taker = this.#takers.get(names);
    if (taker === undefined) {
      taker = new Taker(sources, this.#queue.server);
      this.#takers.set(names, taker);
      for (const list of others) list.#joint.add(taker);
    }
    return taker;
  }
}
