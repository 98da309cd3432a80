import type { DelayedBytes, DelayedFace, DelayedMessages } from "../delayed/delayed-messages.ts";
import type { Due, Offering, OfferResult } from "../delayed/offering.ts";
import { offerEach } from "../delayed/offer-each.ts";
import type { PlainResult } from "../delayed/make-plain.ts";
import { ClosedError, OfferError, RedisError } from "../errors.ts";
import type { SearchHit } from "../lua/delayed/search-page.ts";
import { bucketOfKey } from "../queue/message/bucket.ts";
import type { Hint } from "../queue/find-options.ts";
import { createId, isMessageId } from "../queue/message/message.ts";
import { grouped } from "./ring/grouped.ts";
import { destinationOf } from "./ring/fact.ts";
import { aborted } from "../redis/call.ts";
import type { Parts } from "./parts/parts.ts";
import { Reading, type MessagesOf } from "./routing/reading.ts";
import { bucketOfId, type Act, type Routing } from "./routing/routing.ts";
import { Seats } from "./routing/seats.ts";

/**
 * The delayed messages of a queue in partitions, as bytes: what {@link DelayedMessages} are for an ordinary queue.
 *
 * What concerns one message goes to one partition. What concerns all goes to all.
 */
export class PartitionedMessages implements DelayedFace {
  readonly #parts: Parts;
  readonly #routing: Routing;
  readonly #messagesOf: MessagesOf;
  readonly #seats: Seats;
  readonly #reading: Reading;
  /** Where an element was found that may be removed. */
  readonly #origins = new WeakMap<Buffer, DelayedMessages>();

  constructor(parts: Parts, routing: Routing, messagesOf: MessagesOf) {
    this.#parts = parts;
    this.#routing = routing;
    this.#messagesOf = messagesOf;
    this.#seats = new Seats(parts);
    this.#reading = new Reading(parts, messagesOf, routing.bringOver);
  }

  get takesHeaders(): boolean {
    return this.#first.takesHeaders;
  }

  checkOpen(): void {
    this.#first.checkOpen();
  }

  /** @throws {OfferError} if Redis did not accept it. */
  async offer(offering: Offering, signal?: AbortSignal): Promise<OfferResult> {
    this.checkOpen();
    try {
      await this.#parts.known(signal);
      const connecting = offering.bucket === undefined ? this.#seats.ready() : undefined;
      if (connecting !== undefined) await connecting;
      const bucket = offering.bucket ?? this.#seats.next();
      const fact = this.#parts.fact ?? (await this.#parts.known(signal));
      const { clock } = this.#parts.at(destinationOf(fact, bucket)).server;
      // An offer that is refused may have been stored by an earlier attempt: the next one is the same message. Its id is
      // made now, and not when it is sent, since each partition sends by itself and the ids tell the order of the offers.
      const sentAs = clock.isSet ? { id: createId(clock.nextStamp(), bucket) } : {};
      const act: Act<OfferResult> = (part, knownFact) =>
        this.#messagesOf(part).offer({ ...offering, bucket, sentAs, knownFact }, signal);
      return await this.#routing.during(() => this.#routing.at(bucket, offering.key, act, signal));
    } catch (error) {
      const doing = `cannot offer to queue "${this.#parts.name}"`;
      const isKnown = error instanceof OfferError || error instanceof ClosedError;
      if (signal?.aborted === true && !isKnown) {
        throw new OfferError(doing, aborted(signal, false), "none");
      }
      if (isKnown || !(error instanceof RedisError)) throw error;
      // It failed before the offer itself was sent.
      throw new OfferError(doing, error.cause, "none");
    }
  }

  async offerMany(offerings: readonly Offering[], signal?: AbortSignal): Promise<OfferResult[]> {
    return await offerEach(this.#parts.name, offerings, (offering) => this.offer(offering, signal));
  }

  async cancel(idOrKey: string, signal?: AbortSignal, hint?: Hint): Promise<boolean> {
    const cancel: Act<boolean> = (part, knownFact) =>
      this.#messagesOf(part).cancel(idOrKey, signal, { knownFact });
    return (await this.#find(idOrKey, cancel, (wasDelayed) => wasDelayed, signal, hint)) === true;
  }

  async reschedule(
    idOrKey: string,
    due: Due | "now",
    signal?: AbortSignal,
    hint?: Hint,
  ): Promise<Pick<DelayedBytes, "id" | "deadline"> | undefined> {
    const reschedule: Act<Pick<DelayedBytes, "id" | "deadline"> | undefined> = (part, knownFact) =>
      this.#messagesOf(part).reschedule(idOrKey, due, signal, { knownFact });
    return await this.#find(idOrKey, reschedule, isThere, signal, hint);
  }

  async get(idOrKey: string, signal?: AbortSignal, hint?: Hint): Promise<DelayedBytes | undefined> {
    const get: Act<DelayedBytes | undefined> = (part, knownFact) =>
      this.#messagesOf(part).get(idOrKey, signal, { knownFact });
    return await this.#find(idOrKey, get, isThere, signal, hint);
  }

  async delayedOf(keys: readonly string[], signal?: AbortSignal, hint?: Hint): Promise<string[]> {
    const found = await Promise.all(
      keys.map(async (key) => {
        const isDelayed: Act<boolean> = async (part, knownFact) => {
          return (await this.#messagesOf(part).delayedOf([key], signal, { knownFact })).length > 0;
        };
        return await this.#find(key, isDelayed, (flag) => flag, signal, hint);
      }),
    );
    return keys.filter((_, i) => found[i] === true);
  }

  keysWith(prefix: string, signal?: AbortSignal): AsyncGenerator<string[], void, void> {
    return this.#reading.keysWith(prefix, signal);
  }

  withPrefix(prefix: string, signal?: AbortSignal): AsyncGenerator<DelayedBytes, void, void> {
    return this.#reading.withPrefix(prefix, signal);
  }

  inDeadlineOrder(step?: number, signal?: AbortSignal): AsyncGenerator<DelayedBytes, void, void> {
    return this.#reading.inDeadlineOrder(step, signal);
  }

  inOrder(maxBytes?: number, signal?: AbortSignal): AsyncGenerator<DelayedBytes, void, void> {
    return this.#reading.inOrder(maxBytes, signal);
  }

  /** Partition by partition. */
  async *search(
    payloads: readonly Buffer[],
    signal?: AbortSignal,
  ): AsyncGenerator<SearchHit, void, void> {
    for (const part of await this.#parts.all(signal)) {
      const messages = this.#messagesOf(part);
      for await (const hit of messages.search(payloads, signal)) {
        this.#origins.set(hit.element, messages);
        yield hit;
      }
    }
  }

  async remove(elements: readonly Buffer[], signal?: AbortSignal): Promise<number> {
    const byOrigin = grouped(elements, (element) => this.#origins.get(element) ?? this.#first);
    let removed = 0;
    for (const [messages, some] of byOrigin) removed += await messages.remove(some, signal);
    return removed;
  }

  /** Takes out the messages that were inserted first, whichever partition they are in. */
  async poll(limit: number, signal?: AbortSignal): Promise<Buffer[]> {
    const payloads: Buffer[] = [];
    while (payloads.length < limit) {
      try {
        const oldest = await this.#reading.oldest(limit - payloads.length, signal);
        if (oldest === undefined) break;
        payloads.push(...(await oldest.messages.poll(oldest.count, signal)));
      } catch (error) {
        // What has been taken out is in nobody's hands but ours.
        if (payloads.length > 0) break;
        throw error;
      }
    }
    return payloads;
  }

  /** @throws {TypeError} always: a message cannot move from one slot to another in one step. */
  pollNewestTo(): Promise<Buffer | undefined> {
    throw new TypeError(
      `queue "${this.#parts.name}" is in partitions: none of its messages can be moved to another queue`,
    );
  }

  async makePlain(signal?: AbortSignal): Promise<PlainResult> {
    const results = await this.#onAll((messages) => messages.makePlain(signal), signal);
    const sum = (of: (result: PlainResult) => number) =>
      results.reduce((total, result) => total + of(result), 0);
    return {
      isPlain: results.every(({ isPlain }) => isPlain),
      consumers: sum(({ consumers }) => consumers),
      ready: sum(({ ready }) => ready),
      moved: sum(({ moved }) => moved),
    };
  }

  size(signal?: AbortSignal): Promise<number> {
    return this.#sum((messages) => messages.size(signal), signal);
  }

  async nextDeadline(signal?: AbortSignal): Promise<number | undefined> {
    const deadlines = await this.#onAll((messages) => messages.nextDeadline(signal), signal);
    const there = deadlines.filter((deadline) => deadline !== undefined);
    return there.length > 0 ? Math.min(...there) : undefined;
  }

  clear(signal?: AbortSignal): Promise<number> {
    return this.#sum((messages) => messages.clear(signal), signal);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#parts.opened.map((part) => this.#messagesOf(part).settled()));
  }

  /**
   * Looks for one message, and acts where it is. An id tells its partition, and so does a partition key. A business
   * key may have been offered with any partition key: the partition that it has without one is asked first, and then all.
   */
  #find<Result>(
    idOrKey: string,
    act: Act<Result>,
    isHit: (result: Result) => boolean,
    signal?: AbortSignal,
    hint?: Hint,
  ): Promise<Result | undefined> {
    return this.#routing.during(() => this.#look(idOrKey, act, isHit, signal, hint));
  }

  async #look<Result>(
    idOrKey: string,
    act: Act<Result>,
    isHit: (result: Result) => boolean,
    signal?: AbortSignal,
    hint?: Hint,
  ): Promise<Result | undefined> {
    this.checkOpen();
    const fact = this.#parts.fact ?? (await this.#parts.known(signal));
    const isId = isMessageId(idOrKey);
    const bucket = isId ? bucketOfId(idOrKey) : (hint?.bucket ?? bucketOfKey(idOrKey));
    if (bucket !== undefined) {
      const result = await this.#routing.at(bucket, idOrKey, act, signal);
      // What has been delivered stays where it was, and so may what waits for its retry there.
      const isSure = isId ? !this.takesHeaders || fact.epoch === 1 : hint?.bucket !== undefined;
      if (isSure || isHit(result)) return result;
    }
    return (await this.#routing.everywhere(idOrKey, act, isHit, signal)).find(isHit);
  }

  async #sum(
    count: (messages: DelayedMessages) => Promise<number>,
    signal?: AbortSignal,
  ): Promise<number> {
    const counts = await this.#onAll(count, signal);
    return counts.reduce((sum, one) => sum + one, 0);
  }

  async #onAll<Result>(
    act: (messages: DelayedMessages) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result[]> {
    this.checkOpen();
    const parts = await this.#parts.all(signal);
    return await Promise.all(parts.map((part) => act(this.#messagesOf(part))));
  }

  get #first(): DelayedMessages {
    return this.#messagesOf(this.#parts.first);
  }
}

function isThere(result: unknown): boolean {
  return result !== undefined;
}
