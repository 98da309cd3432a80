import { OfferError, OfferManyError } from "../errors.ts";
import { clearDelayed } from "../lua/delayed/clear-delayed.ts";
import type { DelayedMember } from "../lua/delayed/get.ts";
import { headDeadline } from "../lua/delayed/head-deadline.ts";
import { pollNewestTo } from "../lua/delayed/poll-newest-to.ts";
import { pollOldest } from "../lua/delayed/poll-oldest.ts";
import type { SearchHit } from "../lua/delayed/search-page.ts";
import { asNumber, run } from "../lua/script.ts";
import { formatMessageId, unpackMember, type MessageId } from "../queue/message.ts";
import type { Queue } from "../queue/queue.ts";
import type { Connections } from "../redis/connections.ts";
import type { ServerClock } from "../time/server-clock.ts";
import { CancelBatch } from "./cancel-batch.ts";
import { InsertionOrder, PAGE_BYTES, STEP } from "./insertion-order.ts";
import { Lookup } from "./lookup.ts";
import { OfferBatch, type Offering, type OfferResult } from "./offer-batch.ts";

/** A delayed message, as bytes. */
export interface DelayedBytes {
  readonly id: MessageId;
  /** Epoch milliseconds on the Redis server's clock. */
  readonly deadline: number;
  readonly payload: Buffer;
  /** The business key, if it was offered with one. */
  readonly key: string | undefined;
}

/**
 * The delayed messages of one queue, as bytes. There is one such object per queue and client, however
 * many handles there are: calls of one turn of the event loop travel together.
 *
 * Arguments have been checked. Every method rejects with `ClosedError` once the queue is closed, and
 * with `RedisError` if Redis refuses a command or its reply is lost.
 */
export class DelayedMessages {
  readonly #queue: Queue;
  readonly #offers: OfferBatch;
  readonly #cancels: CancelBatch;
  readonly #order: InsertionOrder;
  readonly #lookup: Lookup;

  constructor(
    queue: Queue,
    shared: {
      readonly connections: Connections;
      readonly clock: ServerClock;
      readonly offerBatches: Set<OfferBatch>;
    },
  ) {
    this.#queue = queue;
    this.#offers = new OfferBatch(queue, shared);
    this.#cancels = new CancelBatch(queue);
    this.#order = new InsertionOrder(queue);
    this.#lookup = new Lookup(queue);
  }

  /** @throws {ClosedError} once the queue is closed. */
  checkOpen(): void {
    this.#queue.checkOpen();
  }

  /** @throws {OfferError} if Redis did not accept it. */
  async offer(offering: Offering): Promise<OfferResult> {
    this.#queue.checkOpen();
    return await this.#offers.add(offering);
  }

  /** @throws {OfferManyError} if Redis did not accept some of them. */
  async offerMany(offerings: readonly Offering[]): Promise<OfferResult[]> {
    const results = await Promise.all(
      offerings.map((offering) =>
        this.#offers.add(offering).catch((error: unknown) => {
          if (error instanceof OfferError) return error;
          throw error;
        }),
      ),
    );
    if (!results.some((result) => result instanceof OfferError)) return results as OfferResult[];
    throw new OfferManyError(this.#queue.name, results);
  }

  /** Cancels a message; returns whether it was delayed. */
  async cancel(idOrKey: string): Promise<boolean> {
    this.#queue.checkOpen();
    return await this.#cancels.add(idOrKey);
  }

  /** Gives a message a new deadline; returns it as it is now, or undefined if it has gone. */
  async reschedule(idOrKey: string, delay: number): Promise<DelayedBytes | undefined> {
    return toBytes(await this.#lookup.reschedule(idOrKey, delay));
  }

  async get(idOrKey: string): Promise<DelayedBytes | undefined> {
    return toBytes(await this.#lookup.get(idOrKey));
  }

  /** The business keys of delayed messages with this prefix, a page at a time; each once. */
  keysWith(prefix: string): AsyncGenerator<string[], void, void> {
    return this.#lookup.keysWith(prefix);
  }

  /** Which of these business keys belong to delayed messages. */
  delayedOf(keys: readonly string[]): Promise<string[]> {
    return this.#lookup.delayedOf(keys);
  }

  async size(): Promise<number> {
    return asNumber(
      await this.#queue.call("measure", (redis, { timeouts }) => redis.zcard(timeouts)),
    );
  }

  /** The earliest deadline, or undefined if nothing is delayed. */
  nextDeadline(): Promise<number | undefined> {
    return this.#queue.read("look at", headDeadline, {});
  }

  /** All messages in the order in which they were inserted, in pages of `maxBytes` or a little more. */
  async *inOrder(maxBytes = PAGE_BYTES): AsyncGenerator<DelayedBytes, void, void> {
    for await (const found of this.#order.members(maxBytes)) {
      const message = toBytes(found);
      if (message !== undefined) yield message;
    }
  }

  /** All messages' elements, each with the verdict whether its payload is one of these. */
  search(payloads: readonly Buffer[]): AsyncGenerator<SearchHit, void, void> {
    return this.#order.search(payloads);
  }

  /** Removes the messages that these elements stand for; returns how many were still there. */
  remove(elements: readonly Buffer[]): Promise<number> {
    return this.#order.remove(elements);
  }

  /** Takes out the messages that were inserted first, `limit` at most; returns their payloads. */
  async poll(limit: number): Promise<Buffer[]> {
    const payloads: Buffer[] = [];
    let hasMore = true;
    while (hasMore && payloads.length < limit) {
      const reply = await this.#queue.change("poll", pollOldest, {
        limit: Math.min(limit - payloads.length, STEP),
        step: STEP,
        maxBytes: PAGE_BYTES,
      });
      hasMore = reply.hasMore;
      for (const member of reply.members) {
        const message = unpackMember(member);
        if (message !== undefined) payloads.push(message.payload);
        else await this.#queue.quarantine(member);
      }
    }
    return payloads;
  }

  /** Moves the message inserted last to the head of this LIST; returns its payload. */
  async pollNewestTo(ready: string): Promise<Buffer | undefined> {
    for (;;) {
      const { payload, hasMore } = await this.#queue.callOnce("poll", (redis, keys) =>
        run(redis, pollNewestTo, { ...keys, ready }, { step: STEP }),
      );
      if (payload !== undefined || !hasMore) return payload;
    }
  }

  /** Drops all; returns how many. */
  clear(): Promise<number> {
    return this.#queue.change("clear", clearDelayed, {});
  }

  /** Resolves when every offer and every cancellation made so far is settled. */
  async settled(): Promise<void> {
    await Promise.all([this.#offers.settled(), this.#cancels.settled()]);
  }
}

function toBytes(found: DelayedMember | undefined): DelayedBytes | undefined {
  const message = found && unpackMember(found.member);
  if (found === undefined || message === undefined) return undefined;
  const { deadline } = found;
  const { id, payload, key } = message;
  return { id: formatMessageId(deadline, id), deadline, payload, key };
}
