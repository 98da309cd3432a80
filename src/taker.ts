import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { BlockingConnection, type Source, type Taken } from "./blocking-connection.ts";
import type { Connections } from "./connections.ts";
import { DeadlineTimer } from "./deadline-timer.ts";
import { ClosedError, RedisError, type DelaylineError } from "./errors.ts";
import { giveBack } from "./lua/give-back.ts";
import { run } from "./lua/script.ts";
import { Pause } from "./pause.ts";

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; Infinity waits for ever. */
  readonly timeout: number;
}

interface Waiter {
  /** How many payloads it takes at most. */
  readonly max: number;
  readonly settle: (taken: readonly Taken[] | undefined) => void;
  /** Without an error: with the reason of the waiter's signal. */
  readonly fail: (error?: unknown) => void;
}

/**
 * Takes ready messages for all who wait for them in this process, over one connection per queue.
 *
 * While anybody waits, it pops. If several wait it first pops as many as they take together; where
 * that finds nothing, or only one waits, it blocks for one message and then pops for the rest; less
 * often where such pops find nothing, as among many consumers. It never fetches more than are waited
 * for, so no message lies in a process that is busy. It blocks for one only: that is all that Redis
 * can give to a process that has vanished without a word.
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
  readonly #pause = new Pause(100, 2000);
  /** After pops that found nothing: how many messages come by blocks before the next pop. */
  #blocksBetween = 0;
  #blocksLeft = 0;
  #connection: BlockingConnection | undefined;
  #unblocking: Promise<void> | undefined;
  #working: Promise<void> | undefined;
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
   * first. At the end of `timeout` it answers none, or undefined if Redis could not be asked at all.
   *
   * @throws {ClosedError} if the taker is closed meanwhile.
   * @throws {RedisError} if Redis refuses the pop (WRONGTYPE, NOPERM). A lost connection does not
   * reject: it is reported, and the wait goes on.
   * @throws the signal's reason, if it is aborted.
   */
  wait(max: number, { signal, timeout }: WaitOptions): Promise<readonly Taken[] | undefined> {
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
    this.#connection?.disconnect();
  }

  /** A waiter goes before it was served. */
  #leave(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    waiter.fail();
    this.#unblock();
  }

  /**
   * A waiter's time is over. If it was the last, the block is ended, and it gets the answer: a message
   * may be on its way already, and whoever asks next must not be given a later one before.
   */
  #expire(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    if (this.#connection === undefined || this.#connection.isLost) {
      waiter.settle(undefined);
    } else if (this.#waiters.size > 0) {
      waiter.settle([]);
    } else {
      this.#expired.add(waiter);
      setTimeout(() => this.#dismiss(waiter), LAST_ANSWER).unref();
      this.#unblock();
    }
  }

  /** An expired waiter gets nothing. */
  #dismiss(waiter: Waiter): void {
    if (this.#expired.delete(waiter)) waiter.settle([]);
  }

  #failAll(error: unknown): void {
    const waiters = [...this.#expired, ...this.#waiters];
    this.#expired.clear();
    this.#waiters.clear();
    for (const waiter of waiters) waiter.fail(error);
  }

  #work(): void {
    this.#working ??= this.#takeWhileWaited().finally(() => {
      this.#working = undefined;
      for (const waiter of this.#expired) this.#dismiss(waiter);
      // Somebody may have come between the last look and here.
      if (this.#waiters.size > 0) this.#work();
    });
  }

  async #takeWhileWaited(): Promise<void> {
    let mayHaveMore = true;
    for (;;) {
      // Those who start to wait in the same turn of the event loop are served together.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      if (this.#waiters.size === 0) return;
      try {
        if (this.#connection === undefined || this.#connection.isLost) {
          this.#connection = await BlockingConnection.open(this.#connections, this.#sources);
        }
        const wanted = this.#wanted();
        // All may have left while it connected.
        if (wanted === 0) break;
        const isPop: boolean = wanted > 1 && mayHaveMore && this.#sources.length === 1;
        const taken: readonly Taken[] = isPop
          ? await this.#connection.pop(wanted)
          : await this.#connection.block();
        mayHaveMore = isPop ? this.#popped(taken.length, wanted) : this.#blocked(taken.length);
        this.#pause.reset();
        await this.#deliver(taken);
      } catch (error) {
        await this.#recover(error);
      }
    }
  }

  /** Decides after a pop whether another one is worth while. */
  #popped(count: number, wanted: number): boolean {
    this.#blocksBetween = count > 0 ? 0 : Math.min(2 * this.#blocksBetween + 1, BLOCKS_BETWEEN);
    this.#blocksLeft = this.#blocksBetween;
    // Fewer than were asked for: the LIST is empty.
    return count === wanted;
  }

  /** Decides after a block whether a pop is worth while. */
  #blocked(count: number): boolean {
    return count > 0 && this.#blocksLeft-- <= 0;
  }

  #wanted(): number {
    let wanted = 0;
    for (const { max } of this.#waiters) wanted += max;
    return wanted;
  }

  /** Ends the block if nobody waits any more. */
  #unblock(): void {
    if (this.#isBlockedInVain) {
      this.#unblocking ??= this.#endBlock().finally(() => (this.#unblocking = undefined));
    }
  }

  get #isBlockedInVain(): boolean {
    return this.#waiters.size === 0 && this.#connection?.isBlocked === true;
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

  async #deliver(taken: readonly Taken[]): Promise<void> {
    let given = 0;
    for (const waiter of [...this.#expired, ...this.#waiters]) {
      if (given === taken.length) break;
      this.#expired.delete(waiter);
      this.#waiters.delete(waiter);
      waiter.settle(taken.slice(given, (given += Math.min(waiter.max, taken.length - given))));
    }
    for (const waiter of this.#expired) this.#dismiss(waiter);
    // Backwards, since each goes to the head: the oldest comes last and stands first.
    for (let end = taken.length; end > given; end -= GIVE_BACK) {
      await this.#giveBack(taken.slice(Math.max(given, end - GIVE_BACK), end));
    }
  }

  /**
   * Puts messages that nobody took back to the head, however often it takes. Where Redis refuses it,
   * whoever waits meanwhile gets them; where the answer was lost, they may be back already.
   */
  async #giveBack(taken: readonly Taken[]): Promise<void> {
    const { target, receipt } = (taken[0] as Taken).source;
    const keys = { target, receipt: `${receipt}${randomUUID()}` };
    const payloads = taken.map(({ payload }) => payload);
    const pause = new Pause(100, 2000);
    for (let isUnknown = false; ;) {
      try {
        await run(this.#connections.background, giveBack, keys, {}, payloads);
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
    this.#connection?.disconnect();
    this.#connection = undefined;
    await this.#pause.wait();
  }

  get #name(): string {
    return `queue "${this.#sources.map(({ target }) => target).join('", "')}"`;
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
