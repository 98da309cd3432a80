import { EventEmitter } from "node:events";
import { BlockingQueue } from "../ready/blocking-queue.ts";
import type { BuiltInCodecs, TypedCodecName } from "../codecs/built-in.ts";
import { Connections } from "../redis/connections.ts";
import { DelayedQueue } from "../delayed/delayed-queue.ts";
import { ClosedError, RedisError, type DelaylineError } from "../errors.ts";
import {
  clientSettings,
  DEFAULTS,
  queueSettings,
  type DelaylineOptions,
  type QueueOptions,
  type QueueSettings,
} from "../queue/options.ts";
import { OpenQueue, type Shared } from "./open-queue.ts";
import { Payloads } from "../queue/payloads.ts";
import { ServerClock } from "../time/server-clock.ts";
import { Subscriber } from "../redis/subscriber.ts";

/** The events of a {@link Delayline}. */
export interface DelaylineEvents {
  /**
   * Something failed that nobody awaits: a transfer, a wait for messages, a handler, a message that
   * cannot be read. It is reported and, where it can be, tried again; no error ends the work.
   *
   * With no listener the error becomes a process warning (`process.on("warning")`, printed on stderr
   * by default), so it is neither lost nor does it end the process.
   */
  error: [error: DelaylineError];
}

/**
 * A client: queues by name, on one Redis.
 *
 * Make one per process and share it. It connects when it is first used. `close()` finishes what is in
 * hand and frees the connections; `await using` does it at the end of the block.
 *
 * ```ts
 * const line = new Delayline({ redis: "redis://localhost:6379" });
 * await line.getDelayedQueue<Order>("orders").offer(order, 5000);
 * const due = await line.getBlockingQueue<Order>("orders").take();
 * ```
 */
export class Delayline extends EventEmitter<DelaylineEvents> implements AsyncDisposable {
  readonly #options: DelaylineOptions;
  readonly #shared: Shared;
  readonly #queues = new Map<string, OpenQueue>();
  #closing: Promise<void> | undefined;

  /** @throws {TypeError | RangeError} if an option is not legal. Nothing is connected yet. */
  constructor(options: DelaylineOptions = {}) {
    super();
    const { closeTimeout } = clientSettings(options);
    queueSettings({}, options);
    this.#options = options;
    const report = (error: DelaylineError) => this.#report(error);
    const clock = new ServerClock();
    const connections = new Connections(options.redis ?? DEFAULTS.redis, {
      onTime: (serverTime, sentAt) => clock.observe(serverTime, sentAt),
      report,
    });
    const subscriber = new Subscriber(connections, report);
    this.#shared = {
      connections,
      subscriber,
      clock,
      offerBatches: new Set(),
      closeTimeout,
      report,
    };
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
    const { queue, delayed } = this.#open(name, settings);
    return new DelayedQueue(name, delayed, new Payloads(queue, settings));
  }

  /**
   * The ready side of a queue, to take due messages from.
   *
   * From now on this process moves due messages of the queue, unless `transfer` is false: a consumer
   * needs nothing else. Throws as {@link getDelayedQueue} does.
   */
  getBlockingQueue<Name extends TypedCodecName>(
    name: string,
    options: QueueOptions & { readonly codec: Name },
  ): BlockingQueue<BuiltInCodecs[Name]>;
  getBlockingQueue<T = unknown>(name: string, options?: QueueOptions<T>): BlockingQueue<T>;
  getBlockingQueue<T = unknown>(name: string, options?: QueueOptions<T>): BlockingQueue<T> {
    const settings = queueSettings(options, this.#options);
    const { queue, ready, subscriptions } = this.#open(name, settings);
    return new BlockingQueue(name, ready, new Payloads(queue, settings), {
      subscriptions,
      report: queue.report,
      listNamed: (other) => this.#open(other, settings).ready,
    });
  }

  /**
   * The Redis server's clock in epoch milliseconds, with fractions. Deadlines are judged by it.
   *
   * It is asked once, and then estimated, to within a round trip; every reply corrects it.
   *
   * @throws {RedisError} if the server cannot be asked.
   */
  async serverTime(): Promise<number> {
    if (this.#closing !== undefined) throw new ClosedError("the client");
    const { clock, connections } = this.#shared;
    try {
      await clock.ready(() => connections.commands.time());
    } catch (error) {
      throw new RedisError("cannot ask for the server's time", connections.explain(error));
    }
    return clock.now() / 1000;
  }

  /**
   * Finishes what is in hand and frees what is ours.
   *
   * First it stops taking and moving: waits reject with {@link ClosedError}, a message that arrives at
   * that moment goes back to the queue, and running handlers are waited for; they may still offer.
   * Then every call is refused, offers under way are settled, and our connections end. A client that
   * was lent to us stays open. May be called twice, early, or while Redis is down: then it gives up
   * after `closeTimeout`. Must not be awaited by a handler, which would wait for itself.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const { subscriber, connections, closeTimeout } = this.#shared;
    const queues = [...this.#queues.values()];

    const startedAt = performance.now();
    const abandoning = setTimeout(() => connections.abandon(), closeTimeout);
    await Promise.all(queues.map((queue) => queue.stopTaking()));
    clearTimeout(abandoning);
    const timeLeft = Math.max(0, startedAt + closeTimeout - performance.now());

    await Promise.all(queues.map((queue) => queue.stopHandling()));

    // Offers may be waiting for a Redis that is down; then ending the connections rejects them.
    let givingUp: NodeJS.Timeout | undefined;
    const givenUp = new Promise<void>((resolve) => {
      givingUp = setTimeout(() => {
        connections.close();
        // A client that was lent to us may keep them for ever: nobody waits for that.
        setImmediate(resolve);
      }, timeLeft);
    });
    await Promise.race([Promise.all(queues.map((queue) => queue.close())), givenUp]);
    clearTimeout(givingUp);

    subscriber.close();
    connections.close();
  }

  #open(
    name: string,
    { interop, transfer }: Pick<QueueSettings<unknown>, "interop" | "transfer">,
  ): OpenQueue {
    if (this.#closing !== undefined) throw new ClosedError("the client");
    const elements = interop === "redisson" ? "members" : "addresses";
    let open = this.#queues.get(name);
    if (open === undefined) {
      open = new OpenQueue(name, elements, this.#shared);
      this.#queues.set(name, open);
    } else if (open.queue.layout.elements !== elements) {
      throw new TypeError(
        `interop of queue "${name}" must be the same for all its handles, got ${interop}`,
      );
    }
    if (transfer) open.startTransfer();
    return open;
  }

  #report(error: DelaylineError): void {
    // Not from within: what a listener throws is its own and must not end a background task.
    process.nextTick(() => {
      if (this.listenerCount("error") > 0) this.emit("error", error);
      else process.emitWarning(error.message, { type: error.name, code: error.code });
    });
  }
}
