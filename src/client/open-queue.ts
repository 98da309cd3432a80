import type { Source } from "../ready/blocking-connection.ts";
import { CancelBatch } from "../delayed/cancel-batch.ts";
import type { Connections } from "../redis/connections.ts";
import { ClosedError, RedisError, type DelaylineError } from "../errors.ts";
import type { QueueKeys } from "../queue/keys.ts";
import { run, type Script, type ScriptArg } from "../lua/script.ts";
import { setAside } from "../lua/ready/set-aside.ts";
import { OfferBatch } from "../delayed/offer-batch.ts";
import { retrying } from "../redis/retry.ts";
import type { ServerClock } from "../time/server-clock.ts";
import type { Subscriber } from "../redis/subscriber.ts";
import type { Subscription } from "../queue/subscription.ts";
import { Taker } from "../ready/taker.ts";
import { TransferTask } from "../delayed/transfer-task.ts";

/** What all queues of a client share. */
export interface ClientContext {
  readonly connections: Connections;
  readonly subscriber: Subscriber;
  readonly clock: ServerClock;
  readonly offerBatches: Set<OfferBatch>;
  readonly closeTimeout: number;
  readonly report: (error: DelaylineError) => void;
}

/**
 * One queue as one client knows it: its keys, and its one transfer task, one taker, and what its calls
 * of one turn are put together in, however many handles there are.
 */
export class QueueContext {
  readonly name: string;
  readonly keys: QueueKeys;
  /** Whether the insertion-order LIST is kept exactly as Redisson does. */
  readonly isExact: boolean;
  readonly clock: ServerClock;
  readonly connections: Connections;
  readonly report: (error: DelaylineError) => void;
  readonly offers: OfferBatch;
  readonly cancels: CancelBatch;
  readonly #client: ClientContext;
  readonly subscriptions = new Set<Subscription>();
  #transferTask: TransferTask | undefined;
  readonly #takers = new Map<string, Taker>();
  #isClosing = false;
  #isClosed = false;

  constructor(name: string, keys: QueueKeys, isExact: boolean, client: ClientContext) {
    this.name = name;
    this.keys = keys;
    this.isExact = isExact;
    this.#client = client;
    this.clock = client.clock;
    this.connections = client.connections;
    this.report = client.report;
    this.offers = new OfferBatch(name, keys, isExact, client);
    this.cancels = new CancelBatch(isExact, (script, words) =>
      this.#send("cancel in", () => run(client.connections.background, script, keys, {}, words)),
    );
  }

  /** @throws {ClosedError} after `close()`. */
  checkOpen(): void {
    if (this.#isClosed) throw new ClosedError("the client");
  }

  /** @throws {ClosedError} once closing has begun, when running handlers may still offer. */
  checkTaking(): void {
    if (this.#isClosing) throw new ClosedError("the client");
  }

  /** From now on this client moves due messages of the queue. */
  startTransfer(): void {
    this.#transferTask ??= new TransferTask(this.name, this.keys, this.isExact, this.#client);
  }

  /**
   * The taker of this queue, or of this queue and others.
   *
   * @throws {ClosedError} once closing has begun.
   */
  taker(others: readonly QueueContext[] = []): Taker {
    this.checkTaking();
    const sources: Source[] = [this, ...others].map(({ keys }) => keys);
    // Names may hold any character, so no separator would do.
    const key = JSON.stringify(sources.map(({ target }) => target));
    let taker = this.#takers.get(key);
    if (taker === undefined) {
      taker = new Taker(sources, this.#client);
      this.#takers.set(key, taker);
    }
    return taker;
  }

  /** Runs a script that only reads, on the connection of the awaited calls. */
  read<Key extends keyof QueueKeys, Arg extends string, Reply>(
    doing: string,
    script: Script<Key, Arg, Reply>,
    args: Readonly<Record<Arg, ScriptArg>>,
    rest?: readonly ScriptArg[],
  ): Promise<Reply> {
    return this.call(doing, () => run(this.connections.commands, script, this.keys, args, rest));
  }

  /** Runs a script that takes messages out, on the connection that never re-sends. */
  change<Key extends keyof QueueKeys, Arg extends string, Reply>(
    doing: string,
    script: Script<Key, Arg, Reply>,
    args: Readonly<Record<Arg, ScriptArg>>,
    rest?: readonly ScriptArg[],
  ): Promise<Reply> {
    return this.call(doing, () => run(this.connections.background, script, this.keys, args, rest));
  }

  /**
   * Sends something to Redis for a user who awaits it.
   *
   * @throws {ClosedError} after `close()`.
   * @throws {RedisError} in place of what ioredis throws, which carries payloads.
   */
  async call<Reply>(doing: string, send: () => Promise<Reply>): Promise<Reply> {
    this.checkOpen();
    return await this.#send(doing, send);
  }

  async #send<Reply>(doing: string, send: () => Promise<Reply>): Promise<Reply> {
    try {
      return await retrying(send);
    } catch (error) {
      const reason = this.connections.explain(error);
      throw new RedisError(`cannot ${doing} queue "${this.name}"`, reason);
    }
  }

  /** Keeps bytes that nobody could read. */
  async quarantine(bytes: Buffer): Promise<void> {
    try {
      await run(this.connections.background, setAside, this.keys, { bytes });
    } catch (error) {
      this.report(new RedisError(`cannot put a message of queue "${this.name}" aside`, error));
    }
  }

  /** Stops taking and moving; resolves when nothing is in hand any more. */
  async stopTaking(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([
      this.#transferTask?.close(),
      ...[...this.#takers.values()].map((taker) => taker.close()),
    ]);
  }

  /** Resolves when the handlers that run have finished. */
  async stopHandling(): Promise<void> {
    await Promise.all([...this.subscriptions].map((subscription) => subscription.close()));
  }

  /** Refuses every call from now on; resolves when the offers that were made are settled. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.offers.settled(), this.cancels.settled()]);
  }
}
