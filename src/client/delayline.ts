import { EventEmitter } from "node:events";
import { BlockingQueue } from "../ready/blocking-queue.ts";
import type { BuiltInCodecs, TypedCodecName } from "../codecs/built-in.ts";
import { DelayedQueue } from "../delayed/delayed-queue.ts";
import type { QueueCounters } from "../observe/counters.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import { RedisError, type AnyDelaylineError, type DelaylineError } from "../errors.ts";
import {
  clientSettings,
  consumerSettings,
  MAX_PARTITIONS,
  queueSettings,
  type CallOptions,
  type ConsumerOptions,
  type DelaylineOptions,
  type QueueOptions,
} from "../queue/options.ts";
import type { DelaylineEvents } from "./delayline-events.ts";
import { OpenPartitions } from "./open-partitions.ts";
import { OpenQueues } from "./open-queues.ts";
import { askServerTime, openServers, type OpenServer } from "./open-server.ts";
import { closeClient } from "./closing.ts";
import { queueNames } from "./queue-names.ts";
import { openReliable } from "./open-reliable.ts";
import { warn, warnOfRecovery } from "./warnings.ts";
import { callSignal, checkWhole } from "../queue/checks.ts";
import type { PartitionInfo } from "../partitions/partition-info.ts";
import {
  checkSetPartitions,
  type SetPartitionsOptions,
} from "../partitions/change/set-partitions-options.ts";
import { checkCloseOptions, type CloseOptions } from "../queue/consuming/consumer.ts";
import { Patience } from "../time/patience.ts";
import { Payloads } from "../queue/payloads.ts";
import { reliableSettings, type ReliableQueueOptions } from "../reliable/reliable-options.ts";
import type { ReliableQueue } from "../reliable/reliable-queue.ts";
import type { Recovery } from "../redis/troubles.ts";

/**
 * A client: queues by name, on one Redis.
 *
 * Make one per process and share it. It connects when a queue is opened, or with `transfer: false` when
 * the queue is first used. `close()` finishes what is in hand and frees the connections; `await using`
 * does it at the end of the block.
 *
 * ```ts
 * const line = new Delayline({ redis: "redis://localhost:6379" });
 * await line.getDelayedQueue<Order>("orders").offer(order, 5000);
 * const due = await line.getBlockingQueue<Order>("orders").take();
 * ```
 */
export class Delayline extends EventEmitter<DelaylineEvents> implements AsyncDisposable {
  readonly #options: DelaylineOptions;
  readonly #servers: readonly [OpenServer, ...OpenServer[]];
  readonly #queues: OpenQueues;
  /** How long running handlers are waited for. */
  readonly #patience = new Patience();
  #closing: Promise<void> | undefined;

  /** @throws {TypeError | RangeError} if an option is not legal. Nothing is connected yet. */
  constructor(options: DelaylineOptions = {}) {
    super();
    const settings = clientSettings(options);
    queueSettings({}, options);
    this.#options = options;
    this.#servers = openServers(options, settings, {
      report: (error) => this.#report(error),
      onRecovered: (recovery) => this.#reportRecovery(recovery),
    });
    this.#queues = new OpenQueues(this.#servers);
  }

  /**
   * The delayed side of a queue, to offer messages to and to manage them.
   *
   * From now on this process moves due messages of the queue, unless `transfer` is false. Handles are
   * cheap: make as many as you like.
   *
   * @throws {TypeError} if the name cannot name a queue (empty, with braces that do not form one
   * `{tag}`, or beginning as our keys do: `delayline_...:`), or if an option is not legal or contradicts what
   * the queue was opened with.
   * @throws {ClosedError} after `close()`.
   */
  getDelayedQueue<Name extends TypedCodecName>(
    name: string,
    options: QueueOptions & { readonly codec: Name },
  ): DelayedQueue<BuiltInCodecs[Name]>;
  getDelayedQueue<T = unknown>(name: string, options?: QueueOptions<T>): DelayedQueue<T>;
  getDelayedQueue<T = unknown>(name: string, options?: QueueOptions<T>): DelayedQueue<T> {
    const settings = queueSettings(options, this.#options);
    const open = this.#queues.open(name, settings);
    return new DelayedQueue<T>(open, open.delayed, new Payloads<T>(open.queue, settings));
  }

  /**
   * The ready side of a queue, to take due messages from.
   *
   * From now on this process moves due messages of the queue, unless `transfer` is false: a consumer
   * needs nothing else. Throws as {@link getDelayedQueue} does.
   */
  getBlockingQueue<Name extends TypedCodecName>(
    name: string,
    options: ConsumerOptions & { readonly codec: Name },
  ): BlockingQueue<BuiltInCodecs[Name]>;
  getBlockingQueue<T = unknown>(name: string, options?: ConsumerOptions<T>): BlockingQueue<T>;
  getBlockingQueue<T = unknown>(name: string, options: ConsumerOptions<T> = {}): BlockingQueue<T> {
    const { exclusive: isExclusive, ...settings } = consumerSettings(options, this.#options);
    const open = this.#queues.open(name, settings, isExclusive);
    const { queue, consumers, takes } = open;
    const exclusive =
      isExclusive && open instanceof OpenPartitions ? open.exclusiveReady : undefined;
    return new BlockingQueue(open, exclusive ?? open.ready, new Payloads(queue, settings), {
      consumers,
      takes,
      report: queue.report,
      exclusive,
      listNamed: (other) => this.#queues.openBeside(open, other, settings).ready,
    });
  }

  /**
   * A reliable queue: its messages are acknowledged, retried, and become dead letters; to offer messages to, to manage
   * them, and to take due ones from.
   *
   * The queue is reliable from the first offer or take on, or as soon as this process moves a due message: for every
   * process its due messages become ready in a stream. From now on this process moves them, unless `transfer` is false. Throws as
   * {@link getDelayedQueue} does, and if the group is open with another `visibilityTimeout` or `maxDeliveries`.
   */
  getReliableQueue<Name extends TypedCodecName>(
    name: string,
    options: ReliableQueueOptions & { readonly codec: Name },
  ): ReliableQueue<BuiltInCodecs[Name]>;
  getReliableQueue<T = unknown>(name: string, options?: ReliableQueueOptions<T>): ReliableQueue<T>;
  getReliableQueue<T = unknown>(name: string, options?: ReliableQueueOptions<T>): ReliableQueue<T> {
    const settings = reliableSettings(options, this.#options);
    const open = this.#queues.open(name, settings.queue, settings.exclusive);
    return openReliable(open, settings);
  }

  /**
   * Gives a queue another number of partitions, while it runs; resolves when all messages are where they belong. One that
   * has none yet gets them. What is in the ordinary queue of that name is taken in, even if the number stays.
   *
   * Any process may call it, and any may finish it: what one that died has left is finished first, whatever
   * number it was for. While it works, calls go on as usual; a
   * message that is looked for is brought over first. A message that is in the hands of a consumer of a
   * partition that goes is waited for. Up to 4 scripts of a millisecond run at once.
   *
   * While the number of a queue changes that is consumed exclusively, nothing becomes ready.
   *
   * @throws {RangeError | TypeError} if `count` is no whole number from 1 to 256, an option is not legal, or this
   * client has the ordinary queue open.
   * @throws {RedisError} if Redis refuses a step, or its reply is lost; the next call goes on.
   * @throws the signal's reason, if it is aborted; the next call goes on.
   */
  async setPartitions(
    name: string,
    count: number,
    options: SetPartitionsOptions = {},
  ): Promise<void> {
    checkWhole("count", count, 1, MAX_PARTITIONS);
    const checked = checkSetPartitions(options);
    const open = this.#queues.openPartitions(name, count);
    await open.setPartitions(count, checked);
  }

  /**
   * The partitions of a queue, and what is in each; none if it is an ordinary queue. It need not be open in this
   * client. O(log N) for each.
   *
   * @throws {TypeError} if the name cannot name a queue, or the queue is on another number of servers.
   */
  async partitions(name: string, options?: CallOptions): Promise<PartitionInfo[]> {
    const signal = callSignal(options);
    return await this.#queues.describePartitions(name, signal);
  }

  /**
   * What is in a queue, in whatever form it is there; it need not be open in this client. Otherwise as `stats()` of a
   * handle.
   */
  async stats(name: string, options?: CallOptions): Promise<QueueStats> {
    const signal = callSignal(options);
    return await this.#queues.stats(name, signal);
  }

  /** What this client has done with each queue that it has open, by its name. Redis is not asked. */
  get counters(): ReadonlyMap<string, QueueCounters> {
    return this.#queues.counters;
  }

  /**
   * The names of the queues that are in Redis, each once, in no order: `for await (const name of line.queues())`. One in
   * partitions is one queue. No snapshot.
   *
   * Reads the names of all keys of the database, on each server, a thousand per step: some 300 us of Redis's time each. A plain
   * queue with nothing but ready messages is found for an hour after the last was moved: its LIST looks like any other.
   *
   * @throws {RedisError} if a server cannot be asked.
   */
  async *queues(options?: CallOptions): AsyncGenerator<string, void, void> {
    const signal = callSignal(options);
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
   * The Redis server's clock in epoch milliseconds, with fractions. Deadlines are judged by it.
   *
   * It is asked once, and then estimated, to within a round trip; every reply corrects it. The nodes of a Cluster have
   * a clock each: there one of them is asked, every time.
   *
   * @throws {RedisError} if the server cannot be asked.
   */
  async serverTime(options?: CallOptions): Promise<number> {
    const signal = callSignal(options);
    this.#queues.checkOpen();
    try {
      return await askServerTime(this.#servers[0], signal);
    } catch (error) {
      signal?.throwIfAborted();
      throw new RedisError("cannot ask for the server's time", error);
    }
  }

  /**
   * Closes all subscriptions of this client, as `close()` of each does: for a process that goes on offering before it ends.
   * What is due is still moved, and what takes by itself goes on: loops, `take`, `poll`.
   *
   * Must not be awaited by a handler, which would wait for itself.
   *
   * @throws {TypeError | RangeError} if an option is not legal; nothing was closed.
   */
  async closeSubscriptions(options: CloseOptions = {}): Promise<void> {
    checkCloseOptions(options);
    await this.#queues.closeSubscriptions(options);
  }

  /**
   * Finishes what is in hand and frees what is ours.
   *
   * First it stops taking and moving: waits reject with {@link ClosedError}, a message that arrives at
   * that moment goes back to the queue, and the handlers' signals are aborted. Running handlers and the
   * bodies of `for await` loops are waited for, without a limit unless `timeout` sets one; they may still
   * offer. Then every call is refused, offers under way are settled, and our connections end. A client
   * that was lent to us stays open.
   *
   * May be called twice, early, or while Redis is down: then it gives up after `closeTimeout`. A later
   * call may shorten the wait for handlers. Must not be awaited by a handler, which would wait for itself.
   *
   * @throws {TypeError | RangeError} if an option is not legal; nothing was closed.
   */
  close(options: CloseOptions = {}): Promise<void> {
    try {
      checkCloseOptions(options);
    } catch (error) {
      return Promise.reject(error);
    }
    if (options.timeout !== undefined) this.#patience.limit(options.timeout);
    this.#closing ??= closeClient(this.#queues, this.#servers, this.#patience);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #report(error: DelaylineError): void {
    // Not from within: what a listener throws is its own and must not end a background task.
    process.nextTick(() => {
      if (this.listenerCount("error") > 0) this.emit("error", error as AnyDelaylineError);
      else warn(error);
    });
  }

  #reportRecovery(recovery: Recovery): void {
    process.nextTick(() => {
      const isHeard = this.listenerCount("recovered") + this.listenerCount("error") > 0;
      if (isHeard) this.emit("recovered", recovery);
      else warnOfRecovery(recovery);
    });
  }
}
