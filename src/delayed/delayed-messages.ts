import { RedisError } from "../errors.ts";
import { UnansweredError } from "../failure.ts";
import { clearDelayed, sizeOfDelayed } from "../lua/delayed/remove.ts";
import type { DelayedMember, DueMember } from "../lua/delayed/get.ts";
import { headDeadline } from "../lua/queue/next-due.ts";
import { pollNewestTo, pollOldest, type PollReply } from "../lua/delayed/poll.ts";
import type { SearchHit } from "../lua/delayed/pages.ts";
import { remove } from "../lua/delayed/remove.ts";
import { onceHeld, type OnceHolder } from "../lua/queue/once.ts";
import { run } from "../lua/script.ts";
import type { Call } from "../queue/call.ts";
import type { FailedAttempt } from "../queue/message/failed-attempt.ts";
import type { OnlyIf } from "../queue/message/only-if.ts";
import type { MessageHeaders } from "../queue/message/headers.ts";
import {
  formatMessageId,
  messageIdAt,
  unpackMember,
  whichOf,
  type MessageId,
} from "../queue/message/message.ts";
import { failuresIn } from "../queue/message/trailer.ts";
import type { Queue } from "../queue/queue.ts";
import { TurnBatch } from "../queue/turn-batch.ts";
import { DeadlineOrder } from "./deadline-order.ts";
import { OrderReader, PAGE_BYTES, STEP } from "./order-reader.ts";
import { Lookup } from "./lookup.ts";
import { makePlain, type PlainResult } from "./make-plain.ts";
import { Exchanges, type Exchanged } from "./exchanges.ts";
import {
  identify,
  type Ground,
  type Grounds,
  type Landing,
  type NextStep,
} from "../queue/landing.ts";
import { OfferBatch } from "./offering/offer-batch.ts";
import { offerEach, type Due, type Offering, type OfferResult } from "../queue/offering.ts";

/** A delayed message, its payload still encoded. */
export interface DelayedBytes {
  readonly id: MessageId;
  /** Epoch milliseconds on the Redis server's clock. */
  readonly deadline: number;
  readonly payload: Buffer;
  /** The payloads that it has collected before this one, oldest first, if there are any. */
  readonly collected?: readonly Buffer[];
  /** The business key, if the message was offered with one. */
  readonly key: string | undefined;
  /** The headers, if the message was offered with any, to a reliable queue. */
  readonly headers: MessageHeaders | undefined;
  /** What has to hold when it is due, if it was offered with such a condition. */
  readonly onlyIf?: OnlyIf;
  /** For how many milliseconds after its deadline it may be delivered, if it was offered with that. */
  readonly deliverWithin?: number;
  /** The lane in which it waits for its turn, if it was offered with one. */
  readonly lane?: string;
  /** Its priority within its lane, if it was offered with one. */
  readonly priority?: number;
  /** Of a message that waits for a retry: its failed attempts, oldest first. */
  readonly failures?: readonly FailedAttempt[];
}

/** Takes offers, to one part of a queue or to several. */
export type Offers = Pick<
  DelayedMessages,
  "takesHeaders" | "checkOpen" | "offer" | "offerMany" | "land" | "beside"
>;

/** Delayed messages, whether of one part or of several. */
export type Delayed = Omit<DelayedMessages, "leave" | "done" | "onceWith">;

/**
 * The delayed messages of one queue, as bytes. What finds a message by its id or business key also finds a retrying one,
 * of a reliable queue. A client has one such object per queue, however many handles there are,
 * so offers and cancellations of one turn of the event loop share scripts.
 *
 * Callers check the arguments. Every method rejects with `ClosedError` once the queue is closed, and with `RedisError`
 * if Redis refuses a command or its reply is lost.
 */
export class DelayedMessages implements Grounds {
  readonly #queue: Queue;
  readonly #offers: OfferBatch;
  readonly #cancels: CancelBatch;
  readonly #exchanges: Exchanges;
  readonly #order: OrderReader;
  readonly #deadlines: DeadlineOrder;
  readonly #lookup: Lookup;

  constructor(queue: Queue) {
    this.#queue = queue;
    this.#offers = new OfferBatch(queue);
    this.#cancels = new CancelBatch(queue);
    this.#exchanges = new Exchanges(queue);
    this.#order = new OrderReader(queue);
    this.#deadlines = new DeadlineOrder(queue);
    this.#lookup = new Lookup(queue);
  }

  /** Whether an offer may have headers. Only the consumers of a reliable queue get them. */
  get takesHeaders(): boolean {
    return false;
  }

  /** @throws {ClosedError} once the queue is closed. */
  checkOpen(): void {
    this.#queue.checkOpen();
  }

  /** Makes a reliable queue plain; see {@link makePlain}. */
  async makePlain(call?: Call): Promise<PlainResult> {
    return await makePlain(this.#queue, call);
  }

  /** @throws {OfferError} if Redis did not accept it. */
  offer(offering: Offering, call?: Call): Promise<OfferResult> {
    // Nothing on this path is async without need: each async function adds to the latency of a single offer.
    this.#queue.checkOpen();
    return this.#offers.add(offering, call);
  }

  /** As {@link offer}, of what was offered before the queue was closed. */
  protected offerAccepted(offering: Offering, call?: Call): Promise<OfferResult> {
    return this.#offers.add(offering, call);
  }

  /** @throws {OfferManyError} if Redis did not accept all of them. */
  async offerMany(offerings: readonly Offering[], call?: Call): Promise<OfferResult[]> {
    return await offerEach(this.#queue.name, offerings, (offering) =>
      this.#offers.add(offering, call),
    );
  }

  /** What is remembered of a message that was offered with `once` under this key. */
  async onceWith(key: string, call?: Call): Promise<OnceHolder | undefined> {
    const [found] = await this.#queue.read("look at", onceHeld, {}, { ...call, rows: [{ key }] });
    return found;
  }

  /** Cancels a message; returns whether it was delayed or retrying. */
  cancel(idOrKey: string, call?: Call): Promise<boolean> {
    // Not async, as `offer`.
    this.#queue.checkOpen();
    return this.#cancels.add(idOrKey, call);
  }

  /** See {@link Grounds.land}. */
  async land<Result>(
    landings: readonly Landing[],
    act: (ground: Ground) => Promise<Result>,
    call?: Call,
  ): Promise<Result> {
    this.#queue.checkOpen();
    await identify(this.#queue, landings, call);
    return await act({ queue: this.#queue });
  }

  /**
   * Messages as they can land in the part of the message that they follow, if its id is known.
   *
   * @throws {TypeError} if they belong to another part.
   */
  async beside(
    landings: readonly Landing[],
    _id?: MessageId,
    _call?: Call,
  ): Promise<readonly Landing[]> {
    return landings;
  }

  /** Cancels a message, and offers the one of the step in its place: both, or neither. */
  async exchange(
    idOrKey: string,
    { landings, to = this }: NextStep,
    call?: Call,
  ): Promise<Exchanged> {
    this.#queue.checkOpen();
    const [landing] = landings as readonly [Landing];
    const exchange = (ground: Ground) => this.#exchanges.add(idOrKey, landing, ground, call);
    return await to.land(landings, exchange, call);
  }

  /** Gives a message a new deadline; returns its id and deadline then, or undefined if it is neither delayed nor retrying. */
  async reschedule(
    idOrKey: string,
    due: Due | "now",
    call?: Call,
  ): Promise<Pick<DelayedBytes, "id" | "deadline"> | undefined> {
    return toBytes(await this.#lookup.reschedule(idOrKey, due, call));
  }

  async get(idOrKey: string, call?: Call): Promise<DelayedBytes | undefined> {
    return toBytes(await this.#lookup.get(idOrKey, call));
  }

  /** The messages whose business keys have this prefix, each once, in no particular order. */
  withPrefix(prefix: string, call?: Call): AsyncGenerator<DelayedBytes, void, void> {
    return allToBytes(this.#lookup.withPrefix(prefix, call));
  }

  /** The messages in the order of their deadlines, each once, read in pages of at most `step`. */
  inDeadlineOrder(step?: number, call?: Call): AsyncGenerator<DelayedBytes, void, void> {
    return allToBytes(this.#deadlines.members(step, call));
  }

  /** The business keys in the index with this prefix, each once, a page at a time. */
  keysWith(prefix: string, call?: Call): AsyncGenerator<string[], void, void> {
    return this.#lookup.keysWith(prefix, call);
  }

  /** Returns those of the business keys that delayed or retrying messages hold. */
  heldOf(keys: readonly string[], call?: Call): Promise<string[]> {
    return this.#lookup.heldOf(keys, call);
  }

  async size(call?: Call): Promise<number> {
    return await this.#queue.read("measure", sizeOfDelayed, {}, call);
  }

  /** The earliest deadline, or undefined if nothing is delayed. */
  nextDeadline(call?: Call): Promise<number | undefined> {
    return this.#queue.read("look at", headDeadline, {}, call);
  }

  /** All messages in insertion order, read in pages of `maxBytes` or a little more. */
  inOrder(maxBytes = PAGE_BYTES, call?: Call): AsyncGenerator<DelayedBytes, void, void> {
    return allToBytes(this.#order.members(maxBytes, call));
  }

  /** Yields the element of every message, and whether the message has one of these payloads. */
  search(payloads: readonly Buffer[], call?: Call): AsyncGenerator<SearchHit, void, void> {
    return this.#order.search(payloads, call);
  }

  /** Removes the messages that these elements stand for; returns how many were still delayed. */
  async remove(elements: readonly Buffer[], call?: Call): Promise<number> {
    const removed = await this.#order.remove(elements, call);
    this.#queue.counters.cancelled += removed;
    return removed;
  }

  /** Takes out up to `limit` messages, those inserted first; returns their payloads. */
  async poll(limit: number, call?: Call): Promise<Buffer[]> {
    const payloads: Buffer[] = [];
    let hasMore = true;
    while (hasMore && payloads.length < limit) {
      const wanted = Math.min(limit - payloads.length, STEP);
      const args = { limit: wanted, step: STEP, maxBytes: PAGE_BYTES };
      const onLate = (late: PollReply) => void this.#quarantineLate(late.members);
      let reply: PollReply;
      try {
        reply = await this.#queue.change("poll", pollOldest, args, { ...call, onLate });
      } catch (error) {
        // Earlier batches have left Redis: return them rather than lose them.
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

  /** Moves the message inserted last to the head of this LIST; returns its payload, or undefined if none is delayed. */
  async pollNewestTo(ready: string, call?: Call): Promise<Buffer | undefined> {
    for (;;) {
      const { payload, hasMore } = await this.#queue.callOnce(
        "poll",
        (redis, keys) => run(redis, pollNewestTo, { ...keys, ready }, { step: STEP }),
        call,
      );
      if (payload !== undefined || !hasMore) return payload;
    }
  }

  /** Puts messages whose poll was given up before the reply arrived into the quarantine. */
  async #quarantineLate(members: readonly Buffer[]): Promise<void> {
    if (members.length === 0) return;
    for (const member of members) {
      const message = unpackMember(member);
      if (message === undefined) await this.#queue.quarantine(member, "unreadable");
      else await this.#queue.quarantine(message.payload);
    }
    const doing = `put ${members.length} message(s) of queue "${this.#queue.name}" into its quarantine`;
    this.#queue.report(new RedisError(doing, new UnansweredError("polled too late", true)));
  }

  /** Drops all messages; returns how many. */
  async clear(call?: Call): Promise<number> {
    const dropped = await this.#queue.change("clear", clearDelayed, {}, call);
    this.#queue.counters.cancelled += dropped;
    return dropped;
  }

  /** Called when the client stays open without this queue. No method may be called afterwards. */
  leave(): void {
    this.#offers.leave();
  }

  /** Resolves once every offer and cancellation made so far is done. */
  async done(): Promise<void> {
    await Promise.all([this.#offers.done(), this.#cancels.done(), this.#exchanges.done()]);
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

function toBytes(
  found: (DelayedMember & Partial<DueMember>) | undefined,
): DelayedBytes | undefined {
  const message = found && unpackMember(found.member);
  if (found === undefined || message === undefined) return undefined;
  const { deadline, place = "delayed", address } = found;
  const { id, payload, collected, key, headers, onlyIf, deliverWithin, lane, priority } = message;
  const trailer = found.member.subarray(9 + id.length + payload.length);
  return {
    id: address === undefined ? formatMessageId(deadline, id) : messageIdAt(address),
    deadline,
    payload,
    key,
    headers,
    ...(collected !== undefined && { collected }),
    ...(onlyIf !== undefined && { onlyIf }),
    ...(deliverWithin !== undefined && { deliverWithin }),
    ...(lane !== undefined && { lane }),
    ...(priority !== undefined && { priority }),
    ...(place === "retrying" && { failures: failuresIn(trailer) }),
  };
}

/** Cancellations on their way to Redis. Those of one turn of the event loop share scripts. */
class CancelBatch {
  readonly #queue: Queue;
  readonly #batch = new TurnBatch<Wanted, boolean>({
    send: (batch) => this.#send(batch.seal()),
    kindOf: ({ knownFact = "" }) => knownFact,
    sizeOf: ({ idOrKey }) => idOrKey.length,
    giveUp: ({ cause }) => cause,
  });

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Cancels a message by its id or business key; returns whether it was delayed or retrying. */
  add(idOrKey: string, call?: Call): Promise<boolean> {
    return this.#batch.add({ idOrKey, knownFact: call?.knownFact }, call);
  }

  /** Resolves once every cancellation made so far is done. */
  done(): Promise<void> {
    return this.#batch.done();
  }

  async #send(wanted: readonly Wanted[]): Promise<boolean[]> {
    const rows = wanted.map(({ idOrKey }) => whichOf(idOrKey));
    const knownFact = wanted[0]?.knownFact;
    const flags = await this.#queue.change("cancel in", remove, {}, { rows, knownFact });
    for (const wasDelayed of flags) if (wasDelayed) this.#queue.counters.cancelled++;
    return flags;
  }
}

/** A message to cancel. A script takes one `knownFact`, so only cancellations with the same one share a script. */
interface Wanted {
  readonly idOrKey: string;
  readonly knownFact: string | undefined;
}
