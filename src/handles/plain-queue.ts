import type { BlockingQueue } from "./blocking-queue.ts";
import type { OpenQueue } from "../partitions/open-queue.ts";
import type { CallOptions } from "../queue/call.ts";
import type { PlainBatchHandler, PlainHandler } from "../queue/consuming/handler.ts";
import type { Subscription } from "../queue/consuming/subscription.ts";
import type {
  BatchOptions,
  SubscribeOptions,
  TakeManyOptions,
} from "../queue/consuming/take-options.ts";
import type { QueueSettings } from "../queue/options.ts";
import type { Payloads } from "../queue/payloads.ts";
import { DelayedQueue } from "./delayed-queue.ts";

/**
 * Both sides of a plain queue in one handle: offers messages and manages them as a {@link DelayedQueue} does, and takes
 * due ones as a {@link BlockingQueue} does. Made by `Delayline.open`.
 *
 * Methods named as in a {@link ReliableQueue} do the same here, except that a message is gone once it is taken (at most once), and
 * that payloads come without a delivery. `size`, `isEmpty` and `clear` concern the delayed messages, as in every handle that
 * offers, so the same code works with both kinds of queue; `clear` drops no ready message. For the ready messages use
 * {@link ready}: it is Redisson's `RBlockingQueue` beside its `RDelayedQueue`.
 */
export class PlainQueue<T = unknown> extends DelayedQueue<T> {
  /** The ready messages: `put`, `peek`, `size`, `drain` and `pollFromAny`, besides the methods that take. */
  readonly ready: BlockingQueue<T>;

  /** @internal Use `Delayline.open`. */
  constructor(
    open: OpenQueue,
    payloads: Payloads<T>,
    settings: QueueSettings<T>,
    ready: BlockingQueue<T>,
  ) {
    super(open, payloads, settings);
    this.ready = ready;
  }

  /** Waits for a message and takes it, as {@link BlockingQueue.take} does. */
  async take(options?: CallOptions): Promise<T> {
    return await this.ready.take(options);
  }

  /** Takes a message, waiting up to `timeout` milliseconds for one, as {@link BlockingQueue.poll} does. */
  async poll(timeout?: number, options?: CallOptions): Promise<T | undefined> {
    return await this.ready.poll(timeout, options);
  }

  /** Takes up to `limit` messages, as {@link BlockingQueue.takeMany} does. */
  async takeMany(options: TakeManyOptions): Promise<T[]> {
    return await this.ready.takeMany(options);
  }

  /** Calls `handler` with each message, as {@link BlockingQueue.subscribe} does. */
  subscribe(handler: PlainHandler<T>, options?: SubscribeOptions<T>): Subscription {
    return this.ready.subscribe(handler, options);
  }

  /** Calls `handler` with several payloads at a time, as {@link BlockingQueue.subscribeBatch} does. */
  subscribeBatch(handler: PlainBatchHandler<T>, options: BatchOptions<readonly T[]>): Subscription {
    return this.ready.subscribeBatch(handler, options);
  }

  /** Takes messages one by one, until the client is closed: `for await (const order of orders)`. */
  [Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    return this.ready[Symbol.asyncIterator]();
  }
}
