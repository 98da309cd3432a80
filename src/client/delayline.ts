import { EventEmitter } from "node:events";
import { checkCall, type CallOptions } from "../queue/call.ts";
import { BlockingQueue } from "../handles/blocking-queue.ts";
import type { BuiltInCodecs, TypedCodecName } from "../codecs/built-in.ts";
import { DelayedQueue } from "../handles/delayed-queue.ts";
import type { QueueCounters } from "../observe/counters.ts";
import { restores, type RestoredEvent } from "../observe/events.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import { RedisError, type AnyDelaylineError, type DelaylineError } from "../errors.ts";
import {
  clientSettings,
  MAX_PARTITIONS,
  queueSettings,
  type DelaylineOptions,
  type OnRestore,
  type QueueOptions,
} from "../queue/options.ts";
import type { DelaylineEvents } from "./delayline-events.ts";
import { OpenQueues } from "./open-queues.ts";
import { openServers } from "./open-servers.ts";
import { closeClient } from "./closing.ts";
import { queueNames } from "./queue-names.ts";
import { describeFallBack, warn, warnOfRecovery, warnOfRestore } from "./warnings.ts";
import { checkWhole } from "../queue/checks.ts";
import { checkEvent } from "../words/brought-events.ts";
import { nameOf, type Named } from "../queue/keys.ts";
import type { PartitionInfo } from "../partitions/partition-info.ts";
import { checkSetPartitions, type SetPartitionsOptions } from "../partitions/change/change.ts";
import { checkCloseOptions, type CloseOptions } from "../queue/consuming/consumer.ts";
import { unlessAwaitedBy } from "../queue/consuming/self-wait.ts";
import { Patience } from "../time/patience.ts";
import { Payloads } from "../queue/payloads.ts";
import type { ReliableQueueOptions } from "../handles/reliable-options.ts";
import { PlainQueue } from "../handles/plain-queue.ts";
import type { ForecastOptions, QueueForecast } from "../handles/forecast.ts";
import {
  checkOpening,
  type OpenQueueOptions,
  type QueueDefinition,
} from "../handles/queue-definition.ts";
import { ReliableQueue } from "../handles/reliable-queue.ts";
import type { Sign } from "../redis/fuse.ts";
import type { Server, Servers } from "../redis/server.ts";
import type { RecoveredEvent } from "../redis/troubles.ts";
import { nextTick } from "../time/runtime.ts";

/** Returns the servers of a client. Not for users. */
export let serversOf: (line: Delayline) => Servers;

/** Returns the queues that a client has open. Not for users. */
export let queuesOf: (line: Delayline) => OpenQueues;

/**
 * A client: opens queues by name, on a Redis server, a Cluster, or several servers.
 *
 * Make one per process and share it. It connects when a queue is opened; with `transfer: false`, when the queue is
 * first used. `close()` finishes the work under way and ends the connections. `await using` closes it at the end of a
 * block.
 *
 * ```ts
 * const line = new Delayline({ redis: "redis://localhost:6379" });
 * await line.getDelayedQueue<Order>("orders").offer(order, 5000);
 * const due = await line.getBlockingQueue<Order>("orders").take();
 * ```
 */
export class Delayline extends EventEmitter<DelaylineEvents> implements AsyncDisposable {
  readonly #servers: Servers;
  readonly #queues: OpenQueues;
  readonly #onRestore: OnRestore;
  /** Why the queues are paused, after Redis went back to an older copy. */
  #restored = "";
  /** How long `close()` waits for running handlers. */
  readonly #patience = new Patience();
  #closing: Promise<void> | undefined;

  static {
    serversOf = (line) => line.#servers;
    queuesOf = (line) => line.#queues;
  }

  /** @throws {TypeError | RangeError} if an option is not legal. Nothing is connected yet. */
  constructor(options: DelaylineOptions = {}) {
    super();
    // Node tells of each listener before it is added, by whichever method.
    (this as EventEmitter).on("newListener", checkEvent);
    const settings = clientSettings(options);
    queueSettings({}, options);
    this.#onRestore = settings.onRestore;
    this.#servers = openServers(options, settings, {
      report: (error) => this.#report(error),
      onRecovered: (recovery) => this.#reportRecovery(recovery),
      onFallBack: (signs) => this.#reportFallBack(signs),
      beforeGoingOn: (server) => this.#pauseRestored(server),
    });
    this.#queues = new OpenQueues(this.#servers, options);
  }

  /**
   * Opens the delayed side of a queue, to offer messages and to manage them.
   *
   * From now on this process moves the queue's due messages, unless `transfer` is false. Handles are cheap: make as
   * many as you like.
   *
   * @throws {TypeError} if the name cannot name a queue (it is empty, has braces that do not form one `{tag}`, or
   * begins like a key of a queue: `delayline_...:`), an option is not legal, or an option contradicts an earlier
   * handle's in this client (`codec`, `interop`).
   * @throws {RangeError} if an option is out of range.
   * @throws {ClosedError} after `close()`, unless a handler or a body of a loop that it waits for is running.
   */
  getDelayedQueue<Name extends TypedCodecName>(
    name: string,
    options: QueueOptions & { readonly codec: Name },
  ): DelayedQueue<BuiltInCodecs[Name]>;
  getDelayedQueue<T = unknown>(name: string, options?: QueueOptions<T>): DelayedQueue<T>;
  getDelayedQueue<T = unknown>(name: string, options?: QueueOptions<T>): DelayedQueue<T> {
    const { open, settings } = this.#queues.forHandle(name, options);
    return new DelayedQueue<T>(open, new Payloads<T>(open.queue, settings), settings);
  }

  /**
   * Opens the ready side of a queue, to take due messages.
   *
   * From now on this process moves the queue's due messages, unless `transfer` is false, so a consumer does not depend
   * on another process for that. Throws as {@link getDelayedQueue} does.
   */
  getBlockingQueue<Name extends TypedCodecName>(
    name: string,
    options: QueueOptions & { readonly codec: Name },
  ): BlockingQueue<BuiltInCodecs[Name]>;
  getBlockingQueue<T = unknown>(name: string, options?: QueueOptions<T>): BlockingQueue<T>;
  getBlockingQueue<T = unknown>(name: string, options?: QueueOptions<T>): BlockingQueue<T> {
    refuseExclusive(options);
    const { open, settings } = this.#queues.forHandle(name, options);
    const { codec, interop, transfer } = settings;
    const others = { codec, interop, transfer };
    return new BlockingQueue(
      open,
      new Payloads(open.queue, settings),
      (other) => this.#queues.forHandle(other, others).open,
    );
  }

  /**
   * Opens a reliable queue, to offer messages, to manage them, and to take due ones. They are acknowledged, retried
   * after a failure, and become dead letters when no attempt succeeds.
   *
   * The first offer or take, or the first due message that this process moves, makes the queue reliable for every
   * process: due messages then become ready in a stream. From now on this process moves them, unless `transfer` is
   * false.
   *
   * Throws as {@link getDelayedQueue} does, and a `TypeError` if this client has the group open with another
   * `leaseTimeout`, `maxAttempts` or `exclusive`.
   */
  getReliableQueue<Name extends TypedCodecName>(
    name: string,
    options: ReliableQueueOptions & { readonly codec: Name },
  ): ReliableQueue<BuiltInCodecs[Name]>;
  getReliableQueue<T = unknown>(name: string, options?: ReliableQueueOptions<T>): ReliableQueue<T>;
  getReliableQueue<T = unknown>(name: string, options?: ReliableQueueOptions<T>): ReliableQueue<T> {
    const { open, settings } = this.#queues.forReliableHandle(name, options);
    return new ReliableQueue(open, new Payloads(open.queue, settings.queue), settings);
  }

  /**
   * Opens a queue by its definition, to offer messages, to manage them, and to take due ones. A reliable queue opens as with
   * {@link getReliableQueue}; a plain one has both sides in one handle.
   *
   * Throws as {@link getDelayedQueue} does, and a `TypeError` if this client has the queue open by another definition with
   * other options.
   *
   * ```ts
   * const orders = line.open(defineQueue<Order>("orders", { codec: "json" }));
   * ```
   */
  open<T>(definition: QueueDefinition<T, "reliable">, options?: OpenQueueOptions): ReliableQueue<T>;
  open<T>(definition: QueueDefinition<T, "plain">, options?: OpenQueueOptions): PlainQueue<T>;
  open<T>(
    definition: QueueDefinition<T>,
    options?: OpenQueueOptions,
  ): ReliableQueue<T> | PlainQueue<T>;
  open<T>(
    definition: QueueDefinition<T>,
    options: OpenQueueOptions = {},
  ): ReliableQueue<T> | PlainQueue<T> {
    checkOpening(definition, options);
    const { name } = definition;
    this.#queues.checkDefinition(definition);
    const { transfer, group } = options;
    const all = {
      ...definition.options,
      ...(transfer !== undefined && { transfer }),
      ...(group !== undefined && { group }),
    } as ReliableQueueOptions<T>;
    const handle =
      definition.kind === "reliable"
        ? this.getReliableQueue(name, all)
        : this.#openPlain(name, all);
    this.#queues.addDefinition(definition);
    return handle;
  }

  #openPlain<T>(name: string, options: QueueOptions<T>): PlainQueue<T> {
    const ready = this.getBlockingQueue(name, options);
    const { open, settings } = this.#queues.forHandle(name, options);
    return new PlainQueue<T>(open, new Payloads<T>(open.queue, settings), settings, ready);
  }

  /**
   * Changes the number of a queue's partitions while the queue is in use; resolves when every message is in the
   * partition where it belongs. A queue without partitions gets them. Messages of the ordinary queue of that name move
   * into the partitions, even if the number stays the same.
   *
   * Any process may call it. A change that is under way is finished first. Other calls work as usual during the change:
   * a call for one message moves that message first. If a partition is dropped, this waits until its messages in flight
   * are settled. Up to 4 scripts of about a millisecond run at once. If this process dies, another one that transfers
   * or takes messages of the queue finishes the change.
   *
   * While the number changes, no message of an exclusively consumed queue is handled.
   *
   * @throws {RangeError | TypeError} if `count` is not a whole number from 1 to 256, an option is not legal, or this
   * client has the queue open with `interop: "redisson"`.
   * @throws {RedisError} if Redis refuses a step, or its reply is lost. The change goes on as if this process had died.
   * @throws the signal's reason, if it is aborted. The change goes on as if this process had died.
   */
  async setPartitions(
    queue: Named,
    count: number,
    options: SetPartitionsOptions = {},
  ): Promise<void> {
    checkWhole("count", count, 1, MAX_PARTITIONS);
    checkSetPartitions(options);
    options.signal?.throwIfAborted();
    const { signal } = options;
    const open = await this.#queues.openPartitions(nameOf(queue), count, { signal });
    await open.setPartitions(count, options);
  }

  /**
   * Returns the partitions of a queue, each with its numbers of messages; none for an ordinary queue. The queue is
   * given by its name, a definition or a handle. The queue need not be open in this client. O(log N) for each
   * partition.
   *
   * @throws {TypeError} if the name cannot name a queue, or the queue is spread over another number of servers.
   */
  async partitions(queue: Named, options?: CallOptions): Promise<PartitionInfo[]> {
    return await this.#queues.describePartitions(nameOf(queue), checkCall(options));
  }

  /**
   * Returns the numbers of a queue, given by its name, a definition or a handle, whether it is plain, reliable or partitioned. The
   * queue need not be open in this client. Otherwise like `stats()` of a handle.
   */
  async stats(queue: Named, options?: CallOptions): Promise<QueueStats> {
    return await this.#queues.stats(nameOf(queue), checkCall(options));
  }

  /**
   * Returns how many messages and retries of a queue fall due in each of some spans. The queue is given by its name, a definition
   * or a handle, and need not be open in this client. Otherwise like `forecast()` of a handle.
   */
  async forecast(queue: Named, options: ForecastOptions): Promise<QueueForecast> {
    return await this.#queues.forecast(nameOf(queue), options);
  }

  /** Counts what this client has done with each of its open queues, by name. Does not ask Redis. */
  get counters(): ReadonlyMap<string, QueueCounters> {
    return this.#queues.counters;
  }

  /**
   * Yields the names of the queues in Redis, each once, in no order: `for await (const name of line.queues())`. A
   * partitioned queue is one name. This is not a snapshot.
   *
   * Reads the names of all keys of the database on each server, a thousand per step of about 300 us of Redis's time. A
   * plain queue that holds only ready messages is found until 30 days after a process of this library last had it open,
   * and not at all if only Java has ever moved it: its LIST looks like any other.
   *
   * @throws {RedisError} if a server cannot be asked.
   */
  async *queues(options?: CallOptions): AsyncGenerator<string, void, void> {
    const signal = checkCall(options)?.signal;
    this.#queues.checkOpen();
    const names = new Set<string>();
    try {
      for (const server of this.#servers) {
        for await (const name of queueNames(server, signal)) {
          if (!names.has(name)) yield name;
          names.add(name);
        }
      }
    } catch (error) {
      signal?.throwIfAborted();
      throw new RedisError("cannot look for queues", error);
    }
  }

  /**
   * Returns the Redis server's clock in epoch milliseconds, with fractions. This clock decides what is due.
   *
   * The server is asked once. After that the clock is estimated to within a round trip; every reply that carries the
   * time corrects the estimate. On a Cluster, where each node has its own clock, every call asks one of the nodes.
   *
   * @throws {RedisError} if the server cannot be asked.
   */
  async serverTime(options?: CallOptions): Promise<number> {
    const signal = checkCall(options)?.signal;
    this.#queues.checkOpen();
    try {
      return await this.#servers[0].time(signal);
    } catch (error) {
      signal?.throwIfAborted();
      throw new RedisError("cannot ask for the server's time", error);
    }
  }

  /**
   * Closes all subscriptions of this client, as their own `close()` does. Use it in a process that still has to offer
   * messages before it ends: due messages still move, and loops, `take` and `poll` continue.
   *
   * A handler may call it, but must not await it: it would wait for itself.
   *
   * @throws {TypeError | RangeError} if an option is not legal. Nothing is closed then.
   * @throws {TypeError} if a handler awaits it. The subscriptions close nevertheless.
   */
  async closeSubscriptions(options: CloseOptions = {}): Promise<void> {
    checkCloseOptions(options);
    await this.#queues.closeSubscriptions(options);
  }

  /**
   * Closes one queue, for a client that stays open: its subscriptions and loops, its waits, and the moving of its
   * messages. Waits for its running handlers as {@link close} does, and ends the connections that only this queue used.
   * Nothing of it stays in memory.
   *
   * Its handles reject with {@link ClosedError} from then on. A new handle of that name opens the queue again, even
   * while it is being closed. A name that is not open is no error.
   *
   * @throws {TypeError | RangeError} if an option is not legal. Nothing is closed then.
   * @throws {TypeError} if one of its handlers, or the body of a loop over it, awaits this. It closes nevertheless.
   */
  async closeQueue(queue: Named, options: CloseOptions = {}): Promise<void> {
    checkCloseOptions(options);
    const name = nameOf(queue);
    const closing = this.#queues.closeOne(name, options.handlerTimeout);
    await unlessAwaitedBy(() => this.#queues.consumers(name), closing);
  }

  /**
   * Finishes the work under way and ends the client's connections.
   *
   * First it stops taking and moving messages: waits reject with {@link ClosedError}, a message that arrives at that moment is
   * returned to the queue, and the handlers' signals are aborted. Then it waits for running handlers and the bodies of `for await`
   * loops. They may still offer messages, even to queues that they open only now; `handlerTimeout` limits that wait. Then it
   * refuses every call, settles the offers under way and ends the connections. A lent client stays open.
   *
   * It may be called twice, or before anything was used. While Redis is down, it gives up after `unreachableTimeout`. A later
   * call may shorten the wait for handlers. A handler may call it, but must not await it: it would wait for itself.
   *
   * @throws {TypeError | RangeError} if an option is not legal. Nothing is closed then.
   * @throws {TypeError} if a handler, or the body of a loop, awaits it. The client closes nevertheless.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkCloseOptions(options);
    if (options.handlerTimeout !== undefined) this.#patience.limit(options.handlerTimeout);
    this.#closing ??= closeClient(this.#queues, this.#servers, this.#patience);
    await unlessAwaitedBy(() => this.#queues.consumers(), this.#closing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #report(error: DelaylineError): void {
    // Outside the caller's stack: an error that a listener throws must not end a background task.
    nextTick(() => {
      if (this.listenerCount("error") > 0) this.emit("error", error as AnyDelaylineError);
      else warn(error);
    });
  }

  #reportFallBack(signs: readonly Sign[]): void {
    const instants = signs.map(({ foundAt }) => foundAt).filter((at) => at !== undefined);
    const fallBack: RestoredEvent = {
      queues: [...new Set(signs.map(({ queue }) => queue))],
      knownAt: Math.max(...signs.map(({ knownAt }) => knownAt)),
      foundAt: instants.length > 0 ? Math.max(...instants) : undefined,
      isPausing: this.#onRestore === "pause",
    };
    this.#restored = describeFallBack(fallBack);
    this.#queues.noteRestored(fallBack.queues, fallBack.foundAt);
    restores.publish(fallBack);
    nextTick(() => {
      const isHeard = this.listenerCount("restored") + this.listenerCount("error") > 0;
      if (isHeard) this.emit("restored", fallBack);
      else warnOfRestore(fallBack);
    });
  }

  /** Rejects with ioredis's errors. */
  async #pauseRestored(server: Server): Promise<void> {
    if (this.#onRestore === "pause") await this.#queues.pauseAll(server, this.#restored);
  }

  #reportRecovery(recovery: RecoveredEvent): void {
    nextTick(() => {
      const isHeard = this.listenerCount("recovered") + this.listenerCount("error") > 0;
      if (isHeard) this.emit("recovered", recovery);
      else warnOfRecovery(recovery);
    });
  }
}

/**
 * A plain queue lost the messages of a process that died, so order per key would have had gaps.
 *
 * @throws {TypeError} if the options ask for exclusive consumption.
 */
function refuseExclusive(options: object = {}): void {
  if (!("exclusive" in options)) return;
  throw new TypeError(
    "exclusive must be left out of a plain queue: order per key needs acknowledgements; use getReliableQueue",
  );
}
