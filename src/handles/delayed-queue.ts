import { checkCall, type CallOptions } from "../queue/call.ts";
import type { QueueSettings } from "../queue/options.ts";
import type { Payloads } from "../queue/payloads.ts";
import { DelayedHandle } from "./delayed-handle.ts";
import { InsertionOrder } from "./insertion-order.ts";
import type { OpenQueue } from "../partitions/open-queue.ts";
import type { PlainResult } from "../delayed/make-plain.ts";

/**
 * The delayed side of a queue: messages that wait for their deadline.
 *
 * At its deadline a message moves to the ready side, where a {@link BlockingQueue} of the same name takes it. Made by
 * `Delayline.getDelayedQueue`.
 *
 * Every method rejects with {@link ClosedError} after `close()`, and with {@link RedisError} if Redis refuses a command
 * or its reply is lost.
 */
export class DelayedQueue<T = unknown> extends DelayedHandle<T, never> {
  /** The delayed messages in the order of the offers: what Redisson's `RDelayedQueue` shows as a collection. */
  readonly insertionOrder: InsertionOrder<T>;
  readonly #open: OpenQueue;

  /** @internal Use `Delayline.getDelayedQueue`. */
  constructor(open: OpenQueue, payloads: Payloads<T>, settings: QueueSettings<T>) {
    super(open, open.plain, payloads, settings);
    this.#open = open;
    this.insertionOrder = new InsertionOrder(open.plain, payloads);
  }

  /**
   * Makes a reliable queue plain again: messages in its stream move to the ready LIST, retries become delayed messages with new
   * ids, and the stream is dropped. Leaves a plain queue as it is.
   *
   * First close every client that has a {@link ReliableQueue} of this name, in every process: it would create the stream again.
   * Processes that use the plain queue may keep running. Nothing changes while a consumer of the stream is alive, or while the
   * stream has more than a thousand messages: let them be consumed first. The result says what prevents the change. Messages in
   * flight for dead consumers go to the LIST, too. A message of several groups goes there once.
   *
   * Messages that wait for their turn in lanes keep waiting. Ready messages lose their ids, keys and headers, and their attempts
   * count from 1 again. Dead letters stay, out of reach until the queue is reliable again: redrive or remove them first.
   *
   * @throws {TypeError} if this client has opened the queue as a reliable one, or its `flow` has a `concurrency`, which a plain
   * queue cannot have; nothing has changed.
   */
  async makePlain(options?: CallOptions): Promise<PlainResult> {
    const result = await this.#open.plain.delayed.makePlain(checkCall(options));
    if (result.isPlain) await this.#open.plain.activity.note({ what: "made plain" });
    return result;
  }
}
