import { DelayedMessages } from "../delayed/delayed-messages.ts";
import type { OfferBatch } from "../delayed/offer-batch.ts";
import { TransferTask } from "../delayed/transfer-task.ts";
import type { DelaylineError } from "../errors.ts";
import type { Elements } from "../lua/family.ts";
import { queueKeys } from "../queue/keys.ts";
import { Queue } from "../queue/queue.ts";
import type { Subscription } from "../queue/subscription.ts";
import { ReadyList } from "../ready/ready-list.ts";
import type { Connections } from "../redis/connections.ts";
import type { Subscriber } from "../redis/subscriber.ts";
import type { ServerClock } from "../time/server-clock.ts";

/** What all queues of a client share. */
export interface Shared {
  readonly connections: Connections;
  readonly subscriber: Subscriber;
  readonly clock: ServerClock;
  readonly offerBatches: Set<OfferBatch>;
  readonly closeTimeout: number;
  readonly report: (error: DelaylineError) => void;
}

/** What a client has running for one queue, however many handles there are. */
export class OpenQueue {
  readonly queue: Queue;
  readonly delayed: DelayedMessages;
  readonly ready: ReadyList;
  readonly subscriptions = new Set<Subscription>();
  readonly #shared: Shared;
  #transferTask: TransferTask | undefined;

  /** @throws {TypeError} if the name cannot name a queue. */
  constructor(name: string, elements: Elements, shared: Shared) {
    this.queue = new Queue(name, queueKeys(name), { elements, into: "list" }, shared);
    this.delayed = new DelayedMessages(this.queue, shared);
    this.ready = new ReadyList(this.queue, shared);
    this.#shared = shared;
  }

  /** From now on this client moves due messages of the queue. */
  startTransfer(): void {
    const { name, keys, layout } = this.queue;
    this.#transferTask ??= new TransferTask(name, keys, layout, this.#shared);
  }

  /** Stops taking and moving; resolves when nothing is in hand any more. */
  async stopTaking(): Promise<void> {
    await Promise.all([this.#transferTask?.close(), this.ready.close()]);
  }

  /** Resolves when the handlers that run have finished. */
  async stopHandling(): Promise<void> {
    await Promise.all([...this.subscriptions].map((subscription) => subscription.close()));
  }

  /** Refuses every call from now on; resolves when the offers that were made are settled. */
  async close(): Promise<void> {
    // What was made in this turn is sent before the queue refuses to send.
    const settled = this.delayed.settled();
    this.queue.close();
    await settled;
  }
}
