import type { SearchHit } from "../lua/delayed/search-page.ts";
import { queueKeys } from "../queue/keys.ts";
import type { MessageId } from "../queue/message.ts";
import {
  checkDuration,
  checkIdOrKey,
  checkInstant,
  checkKey,
  checkWhole,
} from "../queue/checks.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { CancelWhereResult, DelayedMessage, NewMessage } from "./delayed-message.ts";
import type { DelayedMessages } from "./delayed-messages.ts";
import type { Due, OfferResult, Offering } from "./offer-batch.ts";
import { offerRule, type OfferOptions } from "./offer-options.ts";

/**
 * The delayed side of a queue: messages that wait for their deadline.
 *
 * At its deadline a message leaves for the ready side, where a {@link BlockingQueue} of the same
 * name takes it. Made by `Delayline.getDelayedQueue`.
 *
 * Methods that look for messages work on the insertion order, oldest first, as Redisson's do, in bounded
 * pages. They are no snapshot: a message that becomes due meanwhile may be missing. Every method rejects
 * with {@link ClosedError} after `close()`, and with {@link RedisError} if Redis refuses a command or its
 * reply is lost.
 */
export class DelayedQueue<T = unknown> {
  /** The queue's name, which is also the Redis key of its ready messages. */
  readonly name: string;
  readonly #messages: DelayedMessages;
  readonly #payloads: Payloads<T>;

  /** @internal Use `Delayline.getDelayedQueue`. */
  constructor(name: string, messages: DelayedMessages, payloads: Payloads<T>) {
    this.name = name;
    this.#messages = messages;
    this.#payloads = payloads;
  }

  /**
   * Puts a message into the queue, to become ready `delay` milliseconds from now on the Redis
   * server's clock.
   *
   * When the promise resolves the message is in Redis and survives this process. An offer that was
   * sent again after a reconnect is stored once, unless its first copy became ready before the second
   * arrived. A delay of 0 is due at once.
   *
   * With a `key` the message can be cancelled, rescheduled and found by it, and `outcome` says what
   * became of a message that had the key already.
   *
   * @throws {RangeError | TypeError} if `delay` is not a number, negative or not finite, or an option
   * is not legal.
   * @throws {EncodeError | PayloadTooLargeError} if the payload has no legal form; nothing was sent.
   * @throws {OfferError} if Redis did not accept it; `stored` says what is known.
   */
  async offer(payload: T, delay: number, options?: OfferOptions): Promise<OfferResult> {
    checkDuration("delay", delay);
    return await this.#offer(payload, { delay }, options);
  }

  /**
   * Puts a message into the queue, to become ready at `date` on the Redis server's clock; a date in
   * the past is due at once. Otherwise as {@link offer}.
   *
   * @throws {RangeError | TypeError} if `date` is not a valid date since 1970.
   */
  async offerAt(payload: T, date: Date, options?: OfferOptions): Promise<OfferResult> {
    return await this.#offer(payload, { deadline: checkInstant("date", date) }, options);
  }

  /**
   * Offers many messages, in this order; returns the results in the same order. They travel a hundred at a time.
   *
   * All are checked and encoded before the first is sent.
   *
   * @throws {OfferManyError} if Redis did not accept some of them; `results` tells which.
   */
  async offerMany(messages: Iterable<NewMessage<T>>): Promise<OfferResult[]> {
    this.#messages.checkOpen();
    const offerings = Array.from(messages, ({ payload, delay, ...options }, i): Offering => {
      checkDuration(`messages[${i}].delay`, delay);
      return {
        payload: this.#payloads.encode(payload),
        due: { delay },
        ...offerRule(options),
      };
    });
    return await this.#messages.offerMany(offerings);
  }

  /**
   * Cancels a delayed message by its id or its key, in O(log N).
   *
   * `true`: it was delayed, and will never be delivered. `false`: it was moved already, or never
   * existed. The answer is exact; if it is lost with the connection, the promise rejects.
   */
  async cancel(idOrKey: MessageId | string): Promise<boolean> {
    checkIdOrKey(idOrKey);
    return await this.#messages.cancel(idOrKey);
  }

  /** Cancels many, a hundred per script; returns a verdict for each, in the same order, as {@link cancel} does. */
  async cancelMany(idsOrKeys: Iterable<MessageId | string>): Promise<boolean[]> {
    const all = Array.from(idsOrKeys);
    for (const idOrKey of all) checkIdOrKey(idOrKey);
    this.#messages.checkOpen();
    return await Promise.all(all.map((idOrKey) => this.#messages.cancel(idOrKey)));
  }

  /**
   * Cancels all messages whose key begins with `prefix`, as in `app1:trans:notice:`. Works in bounded
   * steps, so a key that is offered meanwhile may be missed.
   *
   * @param options.dryRun cancels nothing, and tells what would be. Defaults to false.
   */
  async cancelWhere(
    { prefix }: { readonly prefix: string },
    { dryRun = false }: { readonly dryRun?: boolean } = {},
  ): Promise<CancelWhereResult> {
    if (typeof prefix !== "string" || prefix === "") {
      throw new TypeError(`prefix must be a non-empty string; clear() drops all messages`);
    }
    const keys: string[] = [];
    for await (const found of this.#messages.keysWith(prefix)) {
      if (dryRun) {
        keys.push(...(await this.#messages.delayedOf(found)));
      } else {
        const flags = await Promise.all(found.map((key) => this.#messages.cancel(key)));
        keys.push(...found.filter((_, i) => flags[i]));
      }
    }
    return { count: keys.length, keys };
  }

  /**
   * Gives a delayed message a new deadline, `delay` milliseconds from now; finds it by its id or key,
   * in O(log N). Returns its new id and deadline, or undefined if it was moved already or never existed.
   *
   * It goes to the end of the insertion order, unless its deadline stays the same to the millisecond.
   */
  async reschedule(
    idOrKey: MessageId | string,
    delay: number,
  ): Promise<Pick<DelayedMessage<T>, "id" | "deadline"> | undefined> {
    checkIdOrKey(idOrKey);
    checkDuration("delay", delay);
    const message = await this.#messages.reschedule(idOrKey, delay);
    return message && { id: message.id, deadline: message.deadline };
  }

  /** The delayed message with this id or key; undefined if there is none. O(log N). */
  async get(idOrKey: MessageId | string): Promise<DelayedMessage<T> | undefined> {
    checkIdOrKey(idOrKey);
    const message = await this.#messages.get(idOrKey);
    return message && { ...message, payload: this.#payloads.decode(message.payload) };
  }

  /** Whether a message with this key is delayed. O(log N). */
  async has(key: string): Promise<boolean> {
    checkKey(key);
    return (await this.#messages.delayedOf([key])).length === 1;
  }

  /** How many messages are delayed. O(1). */
  async size(): Promise<number> {
    return await this.#messages.size();
  }

  /** Whether no message is delayed. O(1). */
  async isEmpty(): Promise<boolean> {
    return (await this.size()) === 0;
  }

  /**
   * The earliest deadline in epoch milliseconds, or undefined if nothing is delayed. O(log N).
   *
   * Infinity if it is beyond what a deadline can be, so that it is never due: somebody else wrote it.
   */
  async nextDeadline(): Promise<number | undefined> {
    return await this.#messages.nextDeadline();
  }

  /** The payload that was inserted first, which need not be due first; undefined if there is none. */
  async peek(): Promise<T | undefined> {
    for await (const { payload } of this.#messages.inOrder(1))
      return this.#payloads.decode(payload);
    return undefined;
  }

  /**
   * Takes the message out that was inserted first, due or not, and returns its payload; undefined if
   * there is none. It will not be delivered.
   *
   * @throws {DecodeError} if the codec cannot read it; its bytes are in the quarantine.
   */
  async poll(): Promise<T | undefined>;
  /**
   * Takes out `limit` messages at most, those inserted first.
   *
   * What the codec cannot read is left out, put into the quarantine, and reported by an `error` event.
   */
  async poll(limit: number): Promise<T[]>;
  async poll(limit?: number): Promise<T | undefined | T[]> {
    if (limit === undefined) {
      const [payload] = await this.#messages.poll(1);
      return payload && (await this.#payloads.decodeTaken(payload));
    }
    checkWhole("limit", limit, 0, Number.MAX_SAFE_INTEGER);
    this.#messages.checkOpen();
    return await this.#payloads.decodeAllTaken(await this.#messages.poll(limit));
  }

  /** The payloads of all delayed messages, in the order in which they were inserted. */
  async readAll(): Promise<T[]> {
    const messages = new Map<MessageId, T>();
    for await (const { id, payload } of this) messages.set(id, payload);
    return [...messages.values()];
  }

  /**
   * All delayed messages in the order in which they were inserted, read a page at a time.
   *
   * None that stays in the queue is missed. One may come twice, if the insertion order is compacted
   * at that moment. What the codec cannot read is left out, and reported by an `error` event.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<DelayedMessage<T>, void, void> {
    for await (const message of this.#messages.inOrder()) {
      for (const payload of this.#payloads.decodeAll([message.payload])) {
        yield { ...message, payload };
      }
    }
  }

  /** Whether a message with this payload is delayed: compares encoded bytes, and may read all. */
  async contains(payload: T): Promise<boolean> {
    for await (const { isMatch } of this.#messages.search([this.#payloads.encode(payload)]))
      if (isMatch) return true;
    return false;
  }

  /**
   * Takes out the first inserted message with this payload, and returns whether there was one. It
   * will not be delivered. Compares encoded bytes, and may read all.
   */
  async remove(payload: T): Promise<boolean> {
    for await (const { element, isMatch } of this.#messages.search([
      this.#payloads.encode(payload),
    ])) {
      if (isMatch && (await this.#messages.remove([element])) === 1) return true;
    }
    return false;
  }

  /** Takes out every message with one of these payloads; returns how many. Reads all. */
  async removeAll(payloads: Iterable<T>): Promise<number> {
    return await this.#removeWhere(payloads, ({ isMatch }) => isMatch);
  }

  /** Takes out every message with none of these payloads; returns how many. Reads all. */
  async retainAll(payloads: Iterable<T>): Promise<number> {
    return await this.#removeWhere(payloads, ({ isMatch }) => !isMatch);
  }

  /** Drops all delayed messages; returns how many. Those that are ready already stay. */
  async clear(): Promise<number> {
    return await this.#messages.clear();
  }

  /**
   * Moves the message inserted last to the head of another queue's ready messages, due or not, and
   * returns its payload; undefined if there is none. Both queues need the same codec, and on Cluster
   * the same slot.
   *
   * @throws {TypeError} if `other` cannot name a queue; nothing was moved.
   * @throws {DecodeError} if the codec cannot read it; it has been moved all the same.
   */
  async pollLastAndOfferFirstTo(other: string): Promise<T | undefined> {
    const payload = await this.#messages.pollNewestTo(queueKeys(other).ready);
    return payload && this.#payloads.decode(payload);
  }

  async #offer(payload: T, due: Due, options?: OfferOptions): Promise<OfferResult> {
    this.#messages.checkOpen();
    const rule = options === undefined ? undefined : offerRule(options);
    return await this.#messages.offer({ payload: this.#payloads.encode(payload), due, ...rule });
  }

  async #removeWhere(
    payloads: Iterable<T>,
    isChosen: (hit: SearchHit) => boolean,
  ): Promise<number> {
    const wanted = Array.from(payloads, (payload) => this.#payloads.encode(payload));
    // First find, then remove: removing moves what is still to be read.
    const chosen: Buffer[] = [];
    for await (const hit of this.#messages.search(wanted))
      if (isChosen(hit)) chosen.push(hit.element);
    return await this.#messages.remove(chosen);
  }
}
