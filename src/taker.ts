import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { Connections } from "./connections.ts";
import { DeadlineTimer } from "./deadline-timer.ts";
import { ClosedError, RedisError, type DelaylineError } from "./errors.ts";
import { giveBack } from "./lua/give-back.ts";
import { run } from "./lua/script.ts";
import { Pause } from "./pause.ts";

/** A target LIST, and where the receipts of its give-backs stand. */
export interface Source {
  readonly target: string;
  readonly receipt: string;
}

/** A payload, and where it was popped from. */
export interface Taken {
  readonly source: Source;
  readonly payload: Buffer;
}

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; Infinity waits for ever. */
  readonly timeout: number;
}

interface Waiter {
  /** How many payloads it takes at most. */
  readonly max: number;
  readonly settle: (taken: readonly Taken[]) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * The one blocking connection of a queue, shared by all who take from it in this process.
 *
 * While anybody waits, it pops. If several wait it first pops as many as they take together; where
 * that finds nothing, or only one waits, it blocks with BLPOP for one message and then pops for the
 * rest. It never fetches more than are waited for, so no message lies in a process that is busy.
 *
 * A block ends after a few seconds by itself, and a watchdog gives the connection up if no answer
 * comes by then: a half-open socket cannot hang a consumer.
 *
 * When the last waiter leaves (aborted, timed out, closed), the block is ended with CLIENT UNBLOCK
 * from another connection, and its answer awaited: Redis answers either "unblocked" or the message.
 * Dropping the socket instead would lose the message in every third race. A message that arrives for
 * nobody goes back to the head of the LIST.
 */
export class Taker {
  readonly #sources: readonly Source[];
  readonly #connections: Connections;
  readonly #report: (error: DelaylineError) => void;
  readonly #closeTimeout: number;

  readonly #waiters = new Set<Waiter>();
  readonly #pause = new Pause(100, 2000);
  #connection: Connection | undefined;
  /** The connection again, while its BLPOP is under way. */
  #blocked: Connection | undefined;
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
   * Waits for payloads, `max` at most, and answers as soon as there is one. Answers none at the end
   * of `timeout`. Who waits first is served first.
   *
   * @throws {ClosedError} if the taker is closed meanwhile.
   * @throws {RedisError} if Redis refuses the pop (WRONGTYPE, NOPERM). A lost connection does not
   * reject: it is reported, and the wait goes on.
   * @throws the signal's reason, if it is aborted.
   */
  wait(max: number, { signal, timeout }: WaitOptions): Promise<readonly Taken[]> {
    return new Promise((resolve, reject) => {
      if (this.#closedAt !== undefined) throw new ClosedError("the client");
      signal?.throwIfAborted();
      const expiry = new DeadlineTimer(() => this.#leave(waiter, () => waiter.settle([])));
      const onAbort = () => this.#leave(waiter, () => waiter.fail(signal?.reason));
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
        fail: (error) => {
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
    this.#connection?.redis.disconnect();
  }

  /** A waiter goes before it was served. */
  #leave(waiter: Waiter, settle: () => void): void {
    this.#waiters.delete(waiter);
    settle();
    this.#unblock();
  }

  #failAll(error: unknown): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter.fail(error);
  }

  #work(): void {
    this.#working ??= this.#takeWhileWaited().finally(() => {
      this.#working = undefined;
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
        this.#connection ??= await this.#open();
        const wanted = this.#wanted();
        // All may have left while it connected.
        if (wanted === 0) return;
        const isPop: boolean = wanted > 1 && mayHaveMore && this.#sources.length === 1;
        const taken: readonly Taken[] = isPop
          ? await this.#pop(this.#connection, wanted)
          : await this.#block(this.#connection);
        mayHaveMore = taken.length > 0;
        this.#pause.reset();
        await this.#deliver(taken);
      } catch (error) {
        await this.#recover(error);
      }
    }
  }

  #wanted(): number {
    let wanted = 0;
    for (const { max } of this.#waiters) wanted += max;
    return wanted;
  }

  async #open(): Promise<Connection> {
    const redis = await this.#connections.open("blocking", this.#sources[0]?.target);
    const connection = { redis, id: await redis.client("ID") };
    redis.once("end", () => {
      if (this.#connection === connection) this.#connection = undefined;
    });
    return connection;
  }

  /** Pops what is there, `count` at most. */
  async #pop({ redis }: Connection, count: number): Promise<Taken[]> {
    const [source] = this.#sources as readonly [Source];
    const stopWatching = watch(redis, 0);
    const payloads = await redis.lpopBuffer(source.target, count).finally(stopWatching);
    return (payloads ?? []).map((payload) => ({ source, payload }));
  }

  /** Blocks for one message. */
  async #block(connection: Connection): Promise<Taken[]> {
    const { redis } = connection;
    const targets = this.#sources.map(({ target }) => target);
    const stopWatching = watch(redis, BLOCK);
    this.#blocked = connection;
    try {
      const popped = await redis.blpopBuffer(targets, BLOCK);
      if (popped === null) return [];
      const [key, payload] = popped;
      // The answer names the key with ioredis's prefix.
      const target = key.toString().slice((redis.options.keyPrefix ?? "").length);
      const source = this.#sources.find((candidate) => candidate.target === target);
      return [{ source: source ?? (this.#sources[0] as Source), payload }];
    } finally {
      stopWatching();
      this.#blocked = undefined;
    }
  }

  /** Ends the block if nobody waits any more. */
  #unblock(): void {
    if (this.#blocked !== undefined && this.#waiters.size === 0) {
      this.#unblocking ??= this.#endBlock().finally(() => (this.#unblocking = undefined));
    }
  }

  async #endBlock(): Promise<void> {
    try {
      while (this.#blocked !== undefined && this.#waiters.size === 0) {
        const { redis, id } = this.#blocked;
        const isUnblocked = await this.#connections.peerOf(redis).client("UNBLOCK", id);
        if (Number(isUnblocked) === 1) return;
        // This connection was faster than the blocking one: the BLPOP has not arrived yet.
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    } catch (error) {
      // The block ends by itself, a few seconds later.
      this.#report(new RedisError(`cannot end the wait of ${this.#name}`, error));
    }
  }

  async #deliver(taken: readonly Taken[]): Promise<void> {
    let given = 0;
    for (const waiter of this.#waiters) {
      if (given === taken.length) return;
      this.#waiters.delete(waiter);
      waiter.settle(taken.slice(given, (given += Math.min(waiter.max, taken.length - given))));
    }
    // Backwards, since each goes to the head: the oldest comes last and stands first.
    for (let end = taken.length; end > given; end -= GIVE_BACK) {
      await this.#giveBack(taken.slice(Math.max(given, end - GIVE_BACK), end));
    }
  }

  /** Puts messages that nobody took back to the head, however often it takes. */
  async #giveBack(taken: readonly Taken[]): Promise<void> {
    const { target, receipt } = (taken[0] as Taken).source;
    const keys = { target, receipt: `${receipt}${randomUUID()}` };
    const payloads = taken.map(({ payload }) => payload);
    const pause = new Pause(100, 2000);
    for (;;) {
      try {
        await run(this.#connections.background, giveBack, keys, {}, payloads);
        return;
      } catch (error) {
        const isLost =
          this.#closedAt !== undefined && performance.now() > this.#closedAt + this.#closeTimeout;
        const what = isLost ? "gave up giving back" : "cannot give back yet";
        this.#report(new RedisError(`${what} ${taken.length} message(s) to ${this.#name}`, error));
        if (isLost) return;
        await pause.wait();
      }
    }
  }

  async #recover(error: unknown): Promise<void> {
    if (this.#closedAt !== undefined) return;
    const failure = new RedisError(`cannot take from ${this.#name}`, error);
    if (failure.reply !== undefined && !PASSING.has(failure.reply)) {
      this.#failAll(failure);
      return;
    }
    this.#report(failure);
    this.#connection?.redis.disconnect();
    this.#connection = undefined;
    await this.#pause.wait();
  }

  get #name(): string {
    return `queue "${this.#sources.map(({ target }) => target).join('", "')}"`;
  }
}

/** A blocking connection, and its id on the server. */
interface Connection {
  readonly redis: Redis;
  readonly id: number;
}

/** Gives a connection up unless it answers within `seconds` and some. Returns how to stop. */
function watch(redis: Redis, seconds: number): () => void {
  const watchdog = setTimeout(() => redis.disconnect(), seconds * 1000 + GRACE);
  return () => clearTimeout(watchdog);
}

/** Seconds that one BLPOP blocks at most. */
const BLOCK = 5;

/** Milliseconds that an answer may take. */
const GRACE = 2000;

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
