import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { BlockingConnection, type Source, type Taken } from "./blocking-connection.ts";
import type { Connections } from "../redis/connections.ts";
import { DeadlineTimer } from "../time/deadline-timer.ts";
import { ClosedError, RedisError, type DelaylineError } from "../errors.ts";
import { giveBack } from "../lua/ready/give-back.ts";
import { run } from "../lua/script.ts";
import { Pause } from "../time/pause.ts";

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; Infinity waits for ever. */
  readonly timeout: number;
}

interface Waiter {
  /** How many payloads it takes at most. */
  readonly max: number;
  readonly settle: (taken: readonly Taken[]) => void;
  /** Without an error: with the reason of the waiter's signal. */
  readonly fail: (error?: unknown) => void;
}

/**
 * Takes ready messages for all who wait for them in this process, over one connection per queue.
 *
 * While anybody waits, it blocks for one message: that is all that Redis can give to a process that has
 * vanished without a word. Whenever there may be more, it first pops for those who wait, all but the
 * last, and the block follows in the same breath; less often where such pops find nothing, as among
 * many consumers. It never fetches more than are waited for, so no
 * message lies in a process that is busy.
 *
 * When the last waiter leaves (aborted, timed out, closed), the block is ended with CLIENT UNBLOCK
 * from another connection, and its answer awaited: Redis answers either "unblocked" or the message.
 * Dropping the socket instead would lose the message in every third race. A message that arrives for
 * nobody goes back to the head of the LIST.
 *
 * A lost connection is reported, and opened again after a growing pause.
 */
export class Taker {
  readonly #sources: readonly Source[];
  readonly #connections: Connections;
  readonly #report: (error: DelaylineError) => void;
  readonly #closeTimeout: number;

  readonly #waiters = new Set<Waiter>();
  /** Waiters whose time is over, but who get the answer that is under way. */
  readonly #expired = new Set<Waiter>();
  /** Waiters whose time was over before there was a connection: they get one pop when there is. */
  readonly #unserved = new Set<Waiter>();
  readonly #pause = new Pause(100, 1000);
  /** After pops that found nothing: how many messages come by blocks alone before the next pop. */
  #blocksBetween = 0;
  #blocksLeft = 0;
  /** Popped, but nobody took them; the block that was sent with the pop is being ended. */
  #left: readonly Taken[] = [];
  #connection: BlockingConnection | undefined;
  #unblocking: Promise<void> | undefined;
  #working: Promise<void> | undefined;
  /** The last removal of a receipt. */
  #forgetting: Promise<unknown> | undefined;
  #closedAt: number | undefined;

  constructor(
    sources: readonly Source[],
    shared: {
      readonly connections: Connections;
      readonly report: (error: DelaylineError) => void;
      readonly closeTimeout: number;
    },
  ) {
    this.#sources = sources;
    this.#connections = shared.connections;
    this.#report = shared.report;
    this.#closeTimeout = shared.closeTimeout;
  }

  /**
   * Waits for payloads, `max` at most, and answers as soon as there is one. Who waits first is served
   * first. At the end of `timeout`, or up to a second later if an answer is under way, it answers none.
   *
   * @throws {ClosedError} if the taker is closed meanwhile.
   * @throws {RedisError} if Redis refuses the pop (WRONGTYPE, NOPERM), or could not be asked before the
   * time was over. A lost connection does not reject: it is reported, and the wait goes on.
   * @throws the signal's reason, if it is aborted.
   */
  wait(max: number, { signal, timeout }: WaitOptions): Promise<readonly Taken[]> {
    return new Promise((resolve, reject) => {
      if (this.#closedAt !== undefined) throw new ClosedError("the client");
      signal?.throwIfAborted();
      // Many may wait with one signal; Node takes more than ten listeners for a leak.
      if (signal !== undefined) setMaxListeners(0, signal);
      const expiry = new DeadlineTimer(() => this.#expire(waiter));
      const onAbort = () => this.#leave(waiter);
      const finish = () => {
        expiry.clear();
        signal?.removeEventListener("abort", onAbort);
      };
      const waiter: Waiter = {
        max,
        settle: (taken) => {
          finish();
          resolve(taken);
        },
        fail: (error = signal?.reason) => {
          finish();
          // A signal may be aborted with any reason.
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors
          reject(error);
        },
      };
      expiry.reset(performance.now() + timeout);
      signal?.addEventListener("abort", onAbort);
      this.#waiters.add(waiter);
      this.#work();
    });
  }

  /** Ends every wait with a {@link ClosedError}; resolves when nothing is in hand any more. */
  async close(): Promise<void> {
    this.#closedAt ??= performance.now();
    this.#failAll(new ClosedError("the client"));
    this.#unblock();
    this.#pause.end();
    await this.#working;
    await this.#unblocking;
    await this.#forgetting;
    this.#connection?.disconnect();
  }

  /** A waiter goes before it was served. */
  #leave(waiter: Waiter): void {
    for (const waiters of [this.#waiters, this.#expired, this.#unserved]) waiters.delete(waiter);
    waiter.fail();
    this.#unblock();
  }

  /**
   * A waiter's time is over. If it was the last, the block is ended, and it gets the answer: a message
   * may be on its way already, and whoever asks next must not be given a later one before. If Redis
   * could not be asked yet, it is given a little more time for that.
   */
  #expire(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    const isConnected = this.#connection !== undefined && !this.#connection.isLost;
    if (isConnected && this.#waiters.size > 0) {
      waiter.settle([]);
      return;
    }
    (isConnected ? this.#expired : this.#unserved).add(waiter);
    setTimeout(() => this.#dismiss(waiter), LAST_ANSWER).unref();
    this.#unblock();
  }

  /** The last answer did not come: an expired waiter gets nothing. */
  #dismiss(waiter: Waiter): void {
    if (this.#expired.delete(waiter)) waiter.settle([]);
    if (!this.#unserved.delete(waiter)) return;
    const silence = new Error("Redis did not answer in time");
    waiter.fail(new RedisError(`cannot take from ${this.#name}`, silence));
  }

  #failAll(error: unknown): void {
    for (const waiters of [this.#unserved, this.#expired, this.#waiters]) {
      for (const waiter of waiters) waiter.fail(error);
      waiters.clear();
    }
  }

  #work(): void {
    this.#working ??= this.#takeWhileWaited().finally(() => {
      this.#working = undefined;
      for (const waiter of this.#expired) this.#dismiss(waiter);
      // Somebody may have come between the last look and here.
      if (this.#isWaitedFor) this.#work();
    });
  }

  async #takeWhileWaited(): Promise<void> {
    let mayHaveMore = true;
    for (;;) {
      // Those who start to wait in the same turn of the event loop are served together.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      if (!this.#isWaitedFor) return;
      try {
        if (this.#connection === undefined || this.#connection.isLost) {
          this.#connection = await BlockingConnection.open(this.#connections, this.#sources);
        }
        if (this.#unserved.size > 0) await this.#popForUnserved(this.#connection);
        // All may have left meanwhile.
        if (this.#waiters.size === 0) continue;
        mayHaveMore = await this.#takeFrom(this.#connection, mayHaveMore);
        this.#pause.reset();
      } catch (error) {
        await this.#recover(error);
      }
    }
  }

  get #isWaitedFor(): boolean {
    return this.#waiters.size + this.#unserved.size > 0;
  }

  /** Pops once for those whose time was over before there was a connection. */
  async #popForUnserved(connection: BlockingConnection): Promise<void> {
    let wanted = 0;
    for (const waiter of this.#unserved) {
      wanted += waiter.max;
      this.#expired.add(waiter);
    }
    this.#unserved.clear();
    let taken: readonly Taken[] = [];
    for (const source of this.#sources) {
      if (taken.length === 0) taken = await connection.pop(wanted, source);
    }
    await this.#deliver(taken);
  }

  /** Takes once, and delivers; answers whether there may be more. */
  async #takeFrom(connection: BlockingConnection, mayHaveMore: boolean): Promise<boolean> {
    const wanted = Array.from(this.#waiters, ({ max }) => max);
    // The last who waits is left to the block.
    const last = wanted.pop() ?? 1;
    const isAlone = wanted.length === 0;
    if (!mayHaveMore || this.#sources.length > 1 || (isAlone && last === 1)) {
      const taken = await connection.block();
      await this.#deliver(taken);
      return this.#isPopWorthwhile(taken.length);
    }
    if (isAlone) {
      const taken = await connection.pop(last);
      await this.#deliver(taken);
      return taken.length === last;
    }
    const [popped, blocked] = connection.popAndBlock(wanted.reduce((sum, max) => sum + max));
    const given = popped.then((taken) => {
      const wasInVain = taken.length === 0;
      this.#blocksBetween = wasInVain ? Math.min(2 * this.#blocksBetween + 1, BLOCKS_BETWEEN) : 0;
      this.#blocksLeft = this.#blocksBetween;
      this.#left = this.#give(taken);
      this.#unblock();
    });
    const outcomes = await Promise.allSettled([given, blocked]);
    const [, block] = outcomes;
    const taken = block.status === "fulfilled" ? block.value : [];
    const left = this.#left;
    this.#left = [];
    await this.#deliver([...left, ...taken]);
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    return this.#isPopWorthwhile(taken.length);
  }

  /** Decides after a block whether more are popped with the next one. */
  #isPopWorthwhile(blocked: number): boolean {
    return blocked > 0 && this.#blocksLeft-- <= 0;
  }

  /** Ends the block if nobody waits any more. */
  #unblock(): void {
    if (this.#isBlockedInVain) {
      this.#unblocking ??= this.#endBlock().finally(() => (this.#unblocking = undefined));
    }
  }

  get #isBlockedInVain(): boolean {
    const isInVain = this.#waiters.size === 0 || this.#left.length > 0;
    return isInVain && this.#connection?.isBlocked === true;
  }

  async #endBlock(): Promise<void> {
    try {
      while (this.#isBlockedInVain) {
        // If it was not blocked, the other connection was faster, and the BLPOP has not arrived yet. If
        // it was, its answer is under way. Look again in both cases: by then it may block once more.
        await this.#connection?.unblock();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    } catch (error) {
      // The block ends by itself, a few seconds later.
      this.#report(new RedisError(`cannot end the wait of ${this.#name}`, error));
    }
  }

  /** Gives messages to those who wait; answers those that nobody took. */
  #give(taken: readonly Taken[]): readonly Taken[] {
    let given = 0;
    for (const waiter of [...this.#expired, ...this.#waiters]) {
      if (given === taken.length) break;
      this.#expired.delete(waiter);
      this.#waiters.delete(waiter);
      waiter.settle(taken.slice(given, (given += Math.min(waiter.max, taken.length - given))));
    }
    return taken.slice(given);
  }

  /** Gives messages to those who wait, and the others back. No more are under way. */
  async #deliver(taken: readonly Taken[]): Promise<void> {
    const left = this.#give(taken);
    for (const waiter of this.#expired) this.#dismiss(waiter);
    // Backwards, since each goes to the head: the oldest comes last and stands first.
    for (let end = left.length; end > 0; end -= GIVE_BACK) {
      await this.#giveBack(left.slice(Math.max(0, end - GIVE_BACK), end));
    }
  }

  /**
   * Puts messages that nobody took back to the head, however often it takes. Where Redis refuses it,
   * whoever waits meanwhile gets them; where the answer was lost, they may be back already, which the
   * receipt tells.
   */
  async #giveBack(taken: readonly Taken[]): Promise<void> {
    const { ready, receipts } = (taken[0] as Taken).source;
    const receipt = randomUUID();
    const pause = new Pause(100, 2000);
    for (let isUnknown = false; ;) {
      try {
        const { background } = this.#connections;
        await run(background, giveBack, { ready, receipts }, { receipt }, taken);
        // Nobody waits for this, and a receipt that stays does no harm. It is dropped after a day.
        this.#forgetting = background.zrem(receipts, receipt).catch(() => {});
        return;
      } catch (error) {
        const isLost =
          this.#closedAt !== undefined && performance.now() > this.#closedAt + this.#closeTimeout;
        const what = isLost ? "gave up giving back" : "cannot give back yet";
        const failure = new RedisError(
          `${what} ${taken.length} message(s) to ${this.#name}`,
          error,
        );
        this.#report(failure);
        if (isLost) return;
        isUnknown ||= failure.reply === undefined;
        await pause.wait();
        if (!isUnknown && this.#waiters.size > 0) return await this.#deliver(taken);
      }
    }
  }

  async #recover(error: unknown): Promise<void> {
    for (const waiter of this.#expired) this.#dismiss(waiter);
    if (this.#closedAt !== undefined) return;
    const failure = new RedisError(`cannot take from ${this.#name}`, error);
    if (failure.reply !== undefined && !PASSING.has(failure.reply)) {
      this.#failAll(failure);
      return;
    }
    this.#report(failure);
    for (const waiter of this.#unserved) waiter.fail(failure);
    this.#unserved.clear();
    this.#connection?.disconnect();
    this.#connection = undefined;
    await this.#pause.wait();
  }

  get #name(): string {
    return `queue "${this.#sources.map(({ ready }) => ready).join('", "')}"`;
  }
}

/** Milliseconds that an answer may take after a wait is over. */
const LAST_ANSWER = 1000;

/** So many blocks between two pops at most. */
const BLOCKS_BETWEEN = 15;

/** Messages per give-back. */
const GIVE_BACK = 500;

/** Refusals that pass: the server starts, fails over, or is busy. The wait goes on. */
const PASSING = new Set([
  "LOADING",
  "READONLY",
  "MASTERDOWN",
  "CLUSTERDOWN",
  "MOVED",
  "ASK",
  "TRYAGAIN",
  "UNBLOCKED",
  "BUSY",
  "MAXCLIENTS",
  "NOREPLICAS",
  "MISCONF",
]);
