import { RedisError } from "../errors.ts";
import { UnansweredError } from "../failure.ts";
import { clearDelayed } from "../lua/delayed/clear-delayed.ts";
import type { DelayedMember } from "../lua/delayed/get.ts";
import { headDeadline } from "../lua/delayed/head-deadline.ts";
import { pollNewestTo } from "../lua/delayed/poll-newest-to.ts";
import { pollOldest, type PollReply } from "../lua/delayed/poll-oldest.ts";
import type { SearchHit } from "../lua/delayed/search-page.ts";
import { makePlain } from "../lua/queue/make-plain.ts";
import { asNumber } from "../lua/reply.ts";
import { run } from "../lua/script.ts";
import type { FailedAttempt } from "../queue/message/failed-attempt.ts";
import type { MessageHeaders } from "../queue/message/headers.ts";
import type { Hint } from "../queue/find-options.ts";
import { formatMessageId, unpackMember, type MessageId } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import type { Connections } from "../redis/connections.ts";
import type { Expiries } from "../time/expiries.ts";
import type { ServerClock } from "../time/server-clock.ts";
import { CancelBatch } from "./cancel-batch.ts";
import { DeadlineOrder } from "./deadline-order.ts";
import { InsertionOrder, PAGE_BYTES, STEP } from "./insertion-order.ts";
import { Lookup } from "./lookup.ts";
import type { PlainResult } from "./plain-result.ts";
import { offerEach } from "./offer-each.ts";
import { OfferBatch, type Due, type Offering, type OfferResult } from "./offer-batch.ts";

/** A delayed message, as bytes. */
export interface DelayedBytes {
  readonly id: MessageId;
  /** Epoch milliseconds on the Redis server's clock. */
  readonly deadline: number;
  readonly payload: Buffer;
  /** The business key, if it was offered with one. */
  readonly key: string | undefined;
  /** If it was offered with some, to a reliable queue. */
  readonly headers: MessageHeaders | undefined;
  /** Of one that waits for a retry: the attempts that have failed, oldest first. */
  readonly failures?: readonly FailedAttempt[];
}

/** What a handle asks of the delayed messages of its queue, which may be in many partitions. */
export type DelayedFace = Omit<Pick<DelayedMessages, keyof DelayedMessages>, "leave">;

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
  readonly #deadlines: DeadlineOrder;
  readonly #lookup: Lookup;

  constructor(
    queue: Queue,
    shared: {
      readonly connections: Connections;
      readonly clock: ServerClock;
      readonly expiries: Expiries;
      readonly offerBatches: Set<OfferBatch>;
    },
  ) {
    this.#queue = queue;
    this.#offers = new OfferBatch(queue, shared);
    this.#cancels = new CancelBatch(queue);
    this.#order = new InsertionOrder(queue);
    this.#deadlines = new DeadlineOrder(queue);
    this.#lookup = new Lookup(queue);
  }

  /** Whether an offer may have headers: only the consumers of a reliable queue are handed them. */
  get takesHeaders(): boolean {
    return false;
  }

  /** @throws {ClosedError} once the queue is closed. */
  checkOpen(): void {
    this.#queue.checkOpen();
  }

  /** Makes a reliable queue plain; `isPlain` is false if consumers live, or too much is ready. */
  async makePlain(signal?: AbortSignal): Promise<PlainResult> {
    this.#queue.checkOpen();
    if (this.#queue.makesStream) {
      throw new TypeError(`queue "${this.#queue.name}" is open as a reliable one in this client`);
    }
    const { channel } = this.#queue.keys;
    const args = { channel, limit: PLAIN_STEP, timeout: FOREIGN_TIMEOUT };
    let moved = 0;
    for (;;) {
      const reply = await this.#queue.change("make plain", makePlain, args, { signal });
      moved += reply.moved;
      const { isPlain, consumers, ready, retrying } = reply;
      if (isPlain || consumers > 0 || (retrying === 0 && ready > PLAIN_STEP)) {
        return { isPlain, consumers, ready, moved };
      }
    }
  }

  /** @throws {OfferError} if Redis did not accept it. */
  offer(offering: Offering, signal?: AbortSignal): Promise<OfferResult> {
    // Not async, nor are others on this path: an offer that is awaited by itself waits for each of them.
    this.#queue.checkOpen();
    return this.#offers.add(offering, signal);
  }

  /** @throws {OfferManyError} if Redis did not accept some of them. */
  async offerMany(offerings: readonly Offering[], signal?: AbortSignal): Promise<OfferResult[]> {
    return await offerEach(this.#queue.name, offerings, (offering) =>
      this.#offers.add(offering, signal),
    );
  }

  /** Cancels a message; returns whether it was delayed. */
  async cancel(idOrKey: string, signal?: AbortSignal, hint?: Hint): Promise<boolean> {
    this.#queue.checkOpen();
    return await this.#cancels.add(idOrKey, signal, hint);
  }

  /**
   * Gives a message a new deadline, or makes it due now; returns where it is now, or undefined if it has
   * gone.
   */
  async reschedule(
    idOrKey: string,
    due: Due | "now",
    signal?: AbortSignal,
    hint?: Hint,
  ): Promise<Pick<DelayedBytes, "id" | "deadline"> | undefined> {
    return toBytes(await this.#lookup.reschedule(idOrKey, due, signal, hint));
  }

  async get(idOrKey: string, signal?: AbortSignal, hint?: Hint): Promise<DelayedBytes | undefined> {
    return toBytes(await this.#lookup.get(idOrKey, signal, hint));
  }

  /** The messages whose business keys have this prefix, in no order; each once. */
  withPrefix(prefix: string, signal?: AbortSignal): AsyncGenerator<DelayedBytes, void, void> {
    return allToBytes(this.#lookup.withPrefix(prefix, signal));
  }

  /** The messages in the order of their deadlines, in pages of `step` at most; each once. */
  inDeadlineOrder(step?: number, signal?: AbortSignal): AsyncGenerator<DelayedBytes, void, void> {
    return allToBytes(this.#deadlines.members(step, signal));
  }

  /** The business keys in the index with this prefix, a page at a time; each once. */
  keysWith(prefix: string, signal?: AbortSignal): AsyncGenerator<string[], void, void> {
    return this.#lookup.keysWith(prefix, signal);
  }

  /** Which of these business keys belong to delayed messages. */
  delayedOf(keys: readonly string[], signal?: AbortSignal, hint?: Hint): Promise<string[]> {
    return this.#lookup.delayedOf(keys, signal, hint);
  }

  async size(signal?: AbortSignal): Promise<number> {
    return asNumber(
      await this.#queue.call("measure", (redis, { timeouts }) => redis.zcard(timeouts), signal),
    );
  }

  /** The earliest deadline, or undefined if nothing is delayed. */
  nextDeadline(signal?: AbortSignal): Promise<number | undefined> {
    return this.#queue.read("look at", headDeadline, {}, { signal });
  }

  /** All messages in the order in which they were inserted, in pages of `maxBytes` or a little more. */
  inOrder(maxBytes = PAGE_BYTES, signal?: AbortSignal): AsyncGenerator<DelayedBytes, void, void> {
    return allToBytes(this.#order.members(maxBytes, signal));
  }

  /** All messages' elements, each with the verdict whether its payload is one of these. */
  search(payloads: readonly Buffer[], signal?: AbortSignal): AsyncGenerator<SearchHit, void, void> {
    return this.#order.search(payloads, signal);
  }

  /** Removes the messages that these elements stand for; returns how many were still there. */
  async remove(elements: readonly Buffer[], signal?: AbortSignal): Promise<number> {
    const removed = await this.#order.remove(elements, signal);
    this.#queue.counters.cancelled += removed;
    return removed;
  }

  /** Takes out the messages that were inserted first, `limit` at most; returns their payloads. */
  async poll(limit: number, signal?: AbortSignal): Promise<Buffer[]> {
    const payloads: Buffer[] = [];
    let hasMore = true;
    while (hasMore && payloads.length < limit) {
      const wanted = Math.min(limit - payloads.length, STEP);
      const args = { limit: wanted, step: STEP, maxBytes: PAGE_BYTES };
      const onLate = (late: PollReply) => void this.#setAside(late.members);
      let reply: PollReply;
      try {
        reply = await this.#queue.change("poll", pollOldest, args, { signal, onLate });
      } catch (error) {
        // What has been taken out is in nobody's hands but ours.
        if (payloads.length > 0) return payloads;
        throw error;
      }
      hasMore = reply.hasMore;
      for (const member of reply.members) {
        const message = unpackMember(member);
        if (message === undefined) await this.#queue.quarantine(member, "unreadable");
        else payloads.push(message.payload);
      }
      this.#queue.counters.taken += reply.members.length;
    }
    return payloads;
  }

  /** Moves the message inserted last to the head of this LIST; returns its payload. */
  async pollNewestTo(ready: string, signal?: AbortSignal): Promise<Buffer | undefined> {
    for (;;) {
      const { payload, hasMore } = await this.#queue.callOnce(
        "poll",
        (redis, keys) => run(redis, pollNewestTo, { ...keys, ready }, { step: STEP }),
        { signal },
      );
      if (payload !== undefined || !hasMore) return payload;
    }
  }

  /** Keeps messages whose poll was given up before the reply came. */
  async #setAside(members: readonly Buffer[]): Promise<void> {
    if (members.length === 0) return;
    for (const member of members) {
      const message = unpackMember(member);
      if (message === undefined) await this.#queue.quarantine(member, "unreadable");
      else await this.#queue.quarantine(message.payload);
    }
    const doing = `put ${members.length} message(s) of queue "${this.#queue.name}" into its quarantine`;
    this.#queue.report(new RedisError(doing, new UnansweredError("polled too late", true)));
  }

  /** Drops all; returns how many. */
  async clear(signal?: AbortSignal): Promise<number> {
    const dropped = await this.#queue.change("clear", clearDelayed, {}, { signal });
    this.#queue.counters.cancelled += dropped;
    return dropped;
  }

  /** Nothing is asked of it any more, while the client goes on without this queue. */
  leave(): void {
    this.#offers.leave();
  }

  /** Resolves when every offer and every cancellation made so far is settled. */
  async settled(): Promise<void> {
    await Promise.all([this.#offers.settled(), this.#cancels.settled()]);
  }
}

async function* allToBytes(
  members: AsyncIterable<DelayedMember>,
): AsyncGenerator<DelayedBytes, void, void> {
  for await (const found of members) {
    const message = toBytes(found);
    if (message !== undefined) yield message;
  }
}

function toBytes(found: DelayedMember | undefined): DelayedBytes | undefined {
  const message = found && unpackMember(found.member);
  if (found === undefined || message === undefined) return undefined;
  const { deadline } = found;
  const { id, payload, key, headers } = message;
  return { id: formatMessageId(deadline, id), deadline, payload, key, headers };
}

/** Messages that one step of making a queue plain moves: a millisecond or two of Redis's time. */
const PLAIN_STEP = 1000;

/** After how many milliseconds of silence a consumer is taken for dead whose name does not tell. */
const FOREIGN_TIMEOUT = 30_000;
