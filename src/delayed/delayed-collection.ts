import type { SearchHit } from "../lua/delayed/search-page.ts";
import { callSignal, checkIterable, checkWhole } from "../queue/checks.ts";
import { queueKeys } from "../queue/keys.ts";
import type { MessageId } from "../queue/message.ts";
import type { CallOptions } from "../queue/options.ts";
import type { Payloads } from "../queue/payloads.ts";
import { QueueHandle, type HandleOptions } from "../queue/queue-handle.ts";
import { decoded, type DelayedMessage } from "./delayed-message.ts";
import type { DelayedMessages } from "./delayed-messages.ts";

/**
 * The delayed messages of a queue as a collection, which is the face that Redisson's `RDelayedQueue` has.
 *
 * Its methods work on the insertion order, oldest first, in bounded pages. They are no snapshot: a message
 * that becomes due meanwhile may be missing.
 */
export abstract class DelayedCollection<T> extends QueueHandle {
  readonly #messages: DelayedMessages;
  readonly #payloads: Payloads<T>;

  /** @internal Use `Delayline.getDelayedQueue`. */
  protected constructor(open: HandleOptions, messages: DelayedMessages, payloads: Payloads<T>) {
    super(open);
    this.#messages = messages;
    this.#payloads = payloads;
  }

  /** The payload that was inserted first, which need not be due first; undefined if there is none. */
  async peek(options?: CallOptions): Promise<T | undefined> {
    for await (const { payload } of this.#messages.inOrder(1, callSignal(options)))
      return this.#payloads.decode(payload);
    return undefined;
  }

  /**
   * Takes the message out that was inserted first, due or not, and returns its payload; undefined if
   * there is none. It will not be delivered.
   *
   * @throws {DecodeError} if the codec cannot read it; its bytes are in the quarantine.
   */
  async poll(limit?: undefined, options?: CallOptions): Promise<T | undefined>;
  /**
   * Takes out `limit` messages at most, those inserted first.
   *
   * What the codec cannot read is left out, put into the quarantine, and reported by an `error` event.
   */
  async poll(limit: number, options?: CallOptions): Promise<T[]>;
  async poll(limit?: number, options?: CallOptions): Promise<T | undefined | T[]> {
    const signal = callSignal(options);
    if (limit === undefined) {
      const [payload] = await this.#messages.poll(1, signal);
      return payload && (await this.#payloads.decodeTaken(payload));
    }
    checkWhole("limit", limit, 0, Number.MAX_SAFE_INTEGER);
    this.#messages.checkOpen();
    return await this.#payloads.decodeAllTaken(await this.#messages.poll(limit, signal));
  }

  /** The payloads of all delayed messages, in the order in which they were inserted. */
  async readAll(options?: CallOptions): Promise<T[]> {
    const messages = new Map<MessageId, T>();
    const all = this.#messages.inOrder(undefined, callSignal(options));
    for await (const { id, payload } of decoded(all, this.#payloads)) messages.set(id, payload);
    return [...messages.values()];
  }

  /**
   * All delayed messages in the order in which they were inserted, read a page at a time.
   *
   * None that stays in the queue is missed. One may come twice, if the insertion order is compacted
   * at that moment. What the codec cannot read is left out, and reported by an `error` event.
   */
  [Symbol.asyncIterator](): AsyncGenerator<DelayedMessage<T>, void, void> {
    return decoded(this.#messages.inOrder(), this.#payloads);
  }

  /** Whether a message with this payload is delayed: compares encoded bytes, and may read all. */
  async contains(payload: T, options?: CallOptions): Promise<boolean> {
    const wanted = [this.#payloads.encode(payload)];
    for await (const { isMatch } of this.#messages.search(wanted, callSignal(options)))
      if (isMatch) return true;
    return false;
  }

  /**
   * Takes out the first inserted message with this payload, and returns whether there was one. It
   * will not be delivered. Compares encoded bytes, and may read all.
   */
  async remove(payload: T, options?: CallOptions): Promise<boolean> {
    const signal = callSignal(options);
    const wanted = [this.#payloads.encode(payload)];
    for await (const { element, isMatch } of this.#messages.search(wanted, signal)) {
      if (isMatch && (await this.#messages.remove([element], signal)) === 1) return true;
    }
    return false;
  }

  /** Takes out every message with one of these payloads; returns how many. Reads all. */
  async removeAll(payloads: Iterable<T>, options?: CallOptions): Promise<number> {
    return await this.#removeWhere(payloads, ({ isMatch }) => isMatch, options);
  }

  /** Takes out every message with none of these payloads; returns how many. Reads all. */
  async retainAll(payloads: Iterable<T>, options?: CallOptions): Promise<number> {
    return await this.#removeWhere(payloads, ({ isMatch }) => !isMatch, options);
  }

  /**
   * Moves the message inserted last to the head of another queue's ready messages, due or not, and
   * returns its payload; undefined if there is none. Both queues need the same codec, and on Cluster
   * the same slot.
   *
   * @throws {TypeError} if `other` cannot name a queue; nothing was moved.
   * @throws {DecodeError} if the codec cannot read it; it has been moved all the same.
   */
  async pollLastAndOfferFirstTo(other: string, options?: CallOptions): Promise<T | undefined> {
    const { ready } = queueKeys(other);
    const payload = await this.#messages.pollNewestTo(ready, callSignal(options));
    return payload && this.#payloads.decode(payload);
  }

  async #removeWhere(
    payloads: Iterable<T>,
    isChosen: (hit: SearchHit) => boolean,
    options?: CallOptions,
  ): Promise<number> {
    const signal = callSignal(options);
    checkIterable("payloads", payloads);
    const wanted = Array.from(payloads, (payload) => this.#payloads.encode(payload));
    // First find, then remove: removing moves what is still to be read.
    const chosen: Buffer[] = [];
    for await (const hit of this.#messages.search(wanted, signal))
      if (isChosen(hit)) chosen.push(hit.element);
    return await this.#messages.remove(chosen, signal);
  }
}
