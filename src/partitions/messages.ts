import type { Delayed, DelayedBytes, DelayedMessages } from "../delayed/delayed-messages.ts";
import {
  collects,
  memberOf,
  offerEach,
  type Due,
  type Offering,
  type OfferResult,
} from "../queue/offering.ts";
import type { Exchanged } from "../delayed/exchanges.ts";
import type { Ground, Landing, NextStep } from "../queue/landing.ts";
import type { PlainResult } from "../delayed/make-plain.ts";
import { ClosedError, OfferError, RedisError } from "../errors.ts";
import type { SearchHit } from "../lua/delayed/pages.ts";
import type { Call } from "../queue/call.ts";
import { bucketOfHash, bucketOfKey, hashIn } from "../queue/message/bucket.ts";
import {
  createId,
  deadlineIn,
  isMessageId,
  messageIdAt,
  type MessageId,
} from "../queue/message/message.ts";
import { grouped } from "../queue/grouped.ts";
import { destinationOf, parseFact, type Fact } from "./ring/fact.ts";
import { isBeside } from "./ordinary-offers.ts";
import { aborted } from "../redis/call.ts";
import { heldByTarget, refusedByTarget } from "./parts/refusal.ts";
import type { Parts } from "./parts/parts.ts";
import { Reading, type MessagesOf } from "./routing/reading.ts";
import { bucketOfId, type Act, type Routing, type Send } from "./routing/routing.ts";
import { Seats } from "./routing/seats.ts";
import type { ServerClock } from "../time/server-clock.ts";

/** What the id of an offer is made of, and where it is put. */
interface Identity {
  readonly clock: ServerClock;
  readonly hash: number;
  readonly sentAs: NonNullable<Offering["sentAs"]>;
}

/**
 * The delayed messages of a partitioned queue, as bytes; {@link DelayedMessages} are those of one part.
 *
 * A call about one message goes to the part that it belongs to. A call about all messages goes to all parts.
 *
 * Callers check the arguments. Every method rejects with `ClosedError` once the queue is closed, and with `RedisError`
 * if Redis refuses a command or its reply is lost.
 */
export class Messages implements Delayed {
  readonly #parts: Parts;
  readonly #routing: Routing;
  readonly #messagesOf: MessagesOf;
  readonly #seats: Seats;
  readonly #reading: Reading;
  /** Where {@link search} found each element that {@link remove} may be given. */
  readonly #origins = new WeakMap<Buffer, DelayedMessages>();
  /** Offers under way that may have no id yet, in the order in which they were made. */
  readonly #unidentified = new Set<Identity>();

  constructor(parts: Parts, routing: Routing, messagesOf: MessagesOf) {
    this.#parts = parts;
    this.#routing = routing;
    this.#messagesOf = messagesOf;
    this.#seats = new Seats(parts);
    this.#reading = new Reading(parts, messagesOf, routing.migration);
  }

  get takesHeaders(): boolean {
    return this.#first.takesHeaders;
  }

  checkOpen(): void {
    this.#first.checkOpen();
  }

  /** @throws {OfferError} if Redis did not accept the message. */
  offer(offering: Offering, call?: Call): Promise<OfferResult> {
    return this.#under(() => this.#offer(offering, call));
  }

  /** A call that {@link Routing.close} waits for, also while it waits for the fact. */
  async #under<Result>(call: () => Promise<Result>): Promise<Result> {
    this.checkOpen();
    return await this.#routing.during(call);
  }

  async #offer(offering: Offering, call?: Call): Promise<OfferResult> {
    const sentBy: Fact[] = [];
    let identity: Identity | undefined;
    try {
      await this.#parts.following.known(call);
      const connecting = offering.hash === undefined ? this.#seats.ready() : undefined;
      if (connecting !== undefined) await connecting;
      const hash = offering.hash ?? this.#seats.next();
      const bucket = bucketOfHash(hash);
      const fact = this.#parts.following.fact ?? (await this.#parts.following.known(call));
      this.#checkGuard(offering, fact);
      const { clock } = this.#parts.at(destinationOf(fact, bucket)).queue;
      // A refused offer may have been stored by an earlier attempt, so every attempt has the same id. The id is made
      // here, not when the offer is sent: each partition sends on its own, and the ids carry the order of the offers.
      identity = { clock, hash, sentAs: {} };
      const { sentAs } = identity;
      this.#unidentified.add(identity);
      if (clock.isSet) this.#identifyAll(clock);
      const { key } = offering;
      const stored = () => sentAs.id && (collects(offering) ? key : memberOf(offering, sentAs.id));
      const ask = (one: Fact) => this.#onceElsewhere(offering, one, bucket, sentAs, call);
      const sending = { key, sentBy, stored, ...(offering.once !== undefined && { ask }) };
      const act: Send<OfferResult> = (part, knownFact) =>
        this.#messagesOf(part).offer({ ...offering, hash, sentAs, knownFact }, call);
      return await this.#routing.send(bucket, sending, act, call);
    } catch (error) {
      throw this.#notOffered(error, sentBy.length, call);
    } finally {
      if (identity !== undefined) this.#unidentified.delete(identity);
    }
  }

  /**
   * The result of an offer with `once` whose key a message in another partition has: a delivered message stays where it is when
   * the number of partitions changes. Undefined if there is none.
   */
  async #onceElsewhere(
    { key = "" }: Offering,
    fact: Fact,
    bucket: number,
    { id }: NonNullable<Offering["sentAs"]>,
    call?: Call,
  ): Promise<OfferResult | undefined> {
    const found = await this.#routing.elsewhere(
      fact,
      bucket,
      (part, to) => this.#messagesOf(part).onceWith(key, to),
      call,
    );
    const own = found.find(({ address }) => id !== undefined && address.subarray(8).equals(id));
    const holder = own ?? found.find(({ isTaken }) => isTaken);
    if (holder === undefined) return undefined;
    const { address, stage, handledAt } = holder;
    const result = { id: messageIdAt(address), deadline: deadlineIn(address) };
    if (own !== undefined) return { ...result, outcome: "added" };
    return { ...result, outcome: "existing", stage, ...(handledAt !== undefined && { handledAt }) };
  }

  /**
   * Makes the ids of all offers to parts with this clock that have none yet: a new one, and before it those that were
   * made when the clock was not set, and have not been sent since.
   */
  #identifyAll(clock: ServerClock): void {
    for (const one of this.#unidentified) {
      if (one.clock !== clock) continue;
      one.sentAs.id ??= createId(clock.nextStamp(), one.hash);
      this.#unidentified.delete(one);
    }
  }

  /** The error of an offer that was sent `attempts` times. */
  #notOffered(error: unknown, attempts: number, call?: Call): unknown {
    const doing = `cannot offer to queue "${this.#parts.name}"`;
    if (error instanceof ClosedError) return error;
    if (error instanceof OfferError) {
      // An attempt before the last one may have stored it.
      const isSure = attempts <= 1 || error.effect === "unknown";
      return isSure ? error : new OfferError(doing, error.cause, "unknown");
    }
    // A step before the offer failed.
    const effect = attempts === 0 ? "none" : "unknown";
    const signal = call?.signal;
    if (signal?.aborted === true) return new OfferError(doing, aborted(signal, false), effect);
    return error instanceof RedisError ? new OfferError(doing, error.cause, effect) : error;
  }

  async offerMany(offerings: readonly Offering[], call?: Call): Promise<OfferResult[]> {
    return await this.#under(async () => {
      if (offerings.some(({ onlyIf }) => onlyIf !== undefined)) {
        const fact = await this.#parts.following.known(call);
        for (const offering of offerings) this.#checkGuard(offering, fact);
      }
      const { name } = this.#parts;
      return await offerEach(name, offerings, (offering) => this.#offer(offering, call));
    });
  }

  /** @throws {TypeError} if the guard of an offer to a partition cannot be asked. */
  #checkGuard({ onlyIf, hash }: Offering, fact: Fact): void {
    if (onlyIf === undefined || !this.#parts.isSpread) return;
    const part =
      hash === undefined ? undefined : this.#parts.at(destinationOf(fact, bucketOfHash(hash)));
    if (part !== undefined && isBeside(onlyIf.key, part)) return;
    throw new TypeError(
      `onlyIf cannot be used in queue "${this.#parts.name}": its partitions are on several nodes, and Redis reads only keys in the slot of the message's partition`,
    );
  }

  async cancel(idOrKey: string, call?: Call): Promise<boolean> {
    const cancel: Act<boolean> = (part, to) => this.#messagesOf(part).cancel(idOrKey, to);
    return (await this.#find(idOrKey, cancel, (wasDelayed) => wasDelayed, call)) === true;
  }

  /**
   * See {@link DelayedMessages.land}. All messages land in one partition: that of their keys, or any.
   *
   * @throws {TypeError} if their keys are of several partitions, or a guard cannot be asked.
   */
  async land<Result>(
    landings: readonly Landing[],
    act: (ground: Ground) => Promise<Result>,
    call?: Call,
  ): Promise<Result> {
    return await this.#under(async () => {
      await this.#parts.following.known(call);
      const hash = landings.find((one) => one.hash !== undefined)?.hash ?? this.#seats.next();
      const bucket = bucketOfHash(hash);
      const keys = landings.flatMap(({ key }) => key ?? []);
      const land: Send<{ result: Result } | { error: unknown }> = async (part, knownFact) => {
        const own = this.#inBucket(landings, bucket, parseFact(knownFact) as Fact);
        try {
          const there = (ground: Ground) => act({ ...ground, knownFact });
          return { result: await this.#messagesOf(part).land(own, there, call) };
        } catch (error) {
          const held = heldByTarget(error);
          // Everything else concerns the queue whose step it is, which may have partitions, too.
          if (held === undefined) return { error };
          part.queue.refused(held, knownFact);
          throw refusedByTarget(`cannot offer to queue "${this.#parts.name}"`, held);
        }
      };
      const landed = await this.#routing.land(bucket, keys, land, call);
      if ("error" in landed) throw landed.error;
      return landed.result;
    });
  }

  /** See {@link DelayedMessages.beside}. */
  async beside(
    landings: readonly Landing[],
    id?: MessageId,
    call?: Call,
  ): Promise<readonly Landing[]> {
    const bucket = id && bucketOfId(id);
    if (bucket === undefined) return landings;
    const fact = this.#parts.following.fact ?? (await this.#parts.following.known(call));
    return this.#inBucket(landings, bucket, fact);
  }

  /**
   * Gives the messages without a key a place in this bucket.
   *
   * @throws {TypeError} if one of the others belongs to another partition, or its guard cannot be asked.
   */
  #inBucket(landings: readonly Landing[], bucket: number, fact: Fact): readonly Landing[] {
    return landings.map((landing) => {
      const { hash = hashIn(bucket) } = landing;
      this.#checkGuard({ ...landing, hash }, fact);
      if (destinationOf(fact, bucketOfHash(hash)) === destinationOf(fact, bucket)) {
        return { ...landing, hash };
      }
      throw new TypeError(
        `a message that is offered in the same step as another must be in its partition of queue "${this.#parts.name}", got the key, the partitionKey or the lane of another one: give both the same partitionKey`,
      );
    });
  }

  async exchange(idOrKey: string, step: NextStep, call?: Call): Promise<Exchanged> {
    if (step.to !== undefined) {
      const act: Act<Exchanged> = (part, to) => this.#messagesOf(part).exchange(idOrKey, step, to);
      return (await this.#find(idOrKey, act, isExchanged, call)) ?? NOT_EXCHANGED;
    }
    if (isMessageId(idOrKey)) return await this.#exchangeById(idOrKey, step.landings, call);
    for (;;) {
      // The new message needs the id of the old one, which says where it belongs.
      const found = await this.get(idOrKey, call);
      if (found === undefined) return NOT_EXCHANGED;
      const exchanged = await this.#exchangeById(found.id, step.landings, call);
      if (isExchanged(exchanged)) return exchanged;
    }
  }

  async #exchangeById(
    id: MessageId,
    landings: readonly Landing[],
    call?: Call,
  ): Promise<Exchanged> {
    const act: Act<Exchanged> = async (part, to) => {
      const fact = parseFact(to?.knownFact ?? "") as Fact;
      const bucket = bucketOfId(id);
      const own = bucket === undefined ? landings : this.#inBucket(landings, bucket, fact);
      for (const { key, hash = 0 } of own) {
        if (key !== undefined) await this.#routing.bring(fact, bucketOfHash(hash), key);
      }
      return await this.#messagesOf(part).exchange(id, { landings: own, to: undefined }, to);
    };
    return (await this.#find(id, act, isExchanged, call)) ?? NOT_EXCHANGED;
  }

  async reschedule(
    idOrKey: string,
    due: Due | "now",
    call?: Call,
  ): Promise<Pick<DelayedBytes, "id" | "deadline"> | undefined> {
    const reschedule: Act<Pick<DelayedBytes, "id" | "deadline"> | undefined> = (part, to) =>
      this.#messagesOf(part).reschedule(idOrKey, due, to);
    return await this.#find(idOrKey, reschedule, isThere, call);
  }

  async get(idOrKey: string, call?: Call): Promise<DelayedBytes | undefined> {
    const get: Act<DelayedBytes | undefined> = (part, to) =>
      this.#messagesOf(part).get(idOrKey, to);
    return await this.#find(idOrKey, get, isThere, call);
  }

  /** Returns those of the business keys that delayed or retrying messages hold. */
  async heldOf(keys: readonly string[], call?: Call): Promise<string[]> {
    const found = await Promise.all(
      keys.map(async (key) => {
        const isHeld: Act<boolean> = async (part, to) =>
          (await this.#messagesOf(part).heldOf([key], to)).length > 0;
        return await this.#find(key, isHeld, (flag) => flag, call);
      }),
    );
    return keys.filter((_, i) => found[i] === true);
  }

  keysWith(prefix: string, call?: Call): AsyncGenerator<string[], void, void> {
    return this.#reading.keysWith(prefix, call);
  }

  withPrefix(prefix: string, call?: Call): AsyncGenerator<DelayedBytes, void, void> {
    return this.#reading.withPrefix(prefix, call);
  }

  inDeadlineOrder(step?: number, call?: Call): AsyncGenerator<DelayedBytes, void, void> {
    return this.#reading.inDeadlineOrder(step, call);
  }

  inOrder(maxBytes?: number, call?: Call): AsyncGenerator<DelayedBytes, void, void> {
    return this.#reading.inOrder(maxBytes, call);
  }

  /** Yields the element of every message, and whether it has one of these payloads: one part after another. */
  async *search(payloads: readonly Buffer[], call?: Call): AsyncGenerator<SearchHit, void, void> {
    for (const part of await this.#parts.all(call)) {
      const messages = this.#messagesOf(part);
      for await (const hit of messages.search(payloads, call)) {
        this.#origins.set(hit.element, messages);
        yield hit;
      }
    }
  }

  /** Removes the messages that these elements of a {@link search} stand for; returns how many were still delayed. */
  async remove(elements: readonly Buffer[], call?: Call): Promise<number> {
    const byOrigin = grouped(elements, (element) => this.#origins.get(element) ?? this.#first);
    let removed = 0;
    for (const [messages, some] of byOrigin) removed += await messages.remove(some, call);
    return removed;
  }

  /** Takes out up to `limit` messages, those inserted first over all parts; returns their payloads. */
  async poll(limit: number, call?: Call): Promise<Buffer[]> {
    const payloads: Buffer[] = [];
    while (payloads.length < limit) {
      try {
        const oldest = await this.#reading.oldest(limit - payloads.length, call);
        if (oldest === undefined) break;
        payloads.push(...(await oldest.messages.poll(oldest.count, call)));
      } catch (error) {
        // Only this call has the payloads taken so far: return them, and let the next call report the error.
        if (payloads.length > 0) break;
        throw error;
      }
    }
    return payloads;
  }

  /** @throws {TypeError} since no script can move a message from one slot to another. */
  pollNewestTo(): Promise<never> {
    const why = `queue "${this.#parts.name}" is partitioned: its messages cannot be moved to another queue`;
    return Promise.reject(new TypeError(why));
  }

  /** Makes a reliable queue plain; see {@link makePlain}. */
  async makePlain(call?: Call): Promise<PlainResult> {
    this.checkOpen();
    const results = await this.#parts.onAll((part) => this.#messagesOf(part).makePlain(call), call);
    const sum = (of: (result: PlainResult) => number) =>
      results.reduce((total, result) => total + of(result), 0);
    return {
      isPlain: results.every(({ isPlain }) => isPlain),
      // A process may be a consumer of several partitions.
      consumers: Math.max(...results.map(({ consumers }) => consumers)),
      ready: sum(({ ready }) => ready),
      moved: sum(({ moved }) => moved),
    };
  }

  async size(call?: Call): Promise<number> {
    this.checkOpen();
    return await this.#parts.sum((part) => this.#messagesOf(part).size(call), call);
  }

  /** The earliest deadline, or undefined if nothing is delayed. */
  async nextDeadline(call?: Call): Promise<number | undefined> {
    this.checkOpen();
    const deadlines = await this.#parts.onAll(
      (part) => this.#messagesOf(part).nextDeadline(call),
      call,
    );
    const found = deadlines.filter((deadline) => deadline !== undefined);
    return found.length > 0 ? Math.min(...found) : undefined;
  }

  /** Drops all messages; returns how many. */
  async clear(call?: Call): Promise<number> {
    this.checkOpen();
    return await this.#parts.sum((part) => this.#messagesOf(part).clear(call), call);
  }

  /**
   * Looks for one message, and acts on the partition that holds it; undefined if none does.
   *
   * An id or a partition key points to one partition. A business key alone does not: the message may have been offered
   * with any partition key. The partition that the business key points to is asked first, then all of them.
   */
  #find<Result>(
    idOrKey: string,
    act: Act<Result>,
    isHit: (result: Result) => boolean,
    call?: Call,
  ): Promise<Result | undefined> {
    return this.#routing.during(async () => {
      this.checkOpen();
      const fact = this.#parts.following.fact ?? (await this.#parts.following.known(call));
      const isId = isMessageId(idOrKey);
      const bucket = isId ? bucketOfId(idOrKey) : (call?.bucket ?? bucketOfKey(idOrKey));
      if (bucket !== undefined) {
        const result = await this.#routing.at(bucket, idOrKey, act, call);
        // In a reliable queue a delivered message stays in its old partition when the number changes, and so may its
        // retry. Its id or partition key is only conclusive while the number has never changed.
        const mayBeLeft = this.takesHeaders && fact.epoch > 1;
        const isSure = !mayBeLeft && (isId || call?.bucket !== undefined);
        if (isSure || isHit(result)) return result;
      }
      return (await this.#routing.everywhere(idOrKey, act, isHit, call)).find(isHit);
    });
  }

  get #first(): DelayedMessages {
    return this.#messagesOf(this.#parts.first);
  }
}

const NOT_EXCHANGED: Exchanged = { cancelled: false, offered: undefined };

/** Whether the message was there. */
function isExchanged({ offered }: Exchanged): boolean {
  return offered !== undefined;
}

function isThere(result: unknown): boolean {
  return result !== undefined;
}
