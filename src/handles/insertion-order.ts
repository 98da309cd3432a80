import type { SearchHit } from "../lua/delayed/pages.ts";
import type { PlainReach } from "../partitions/reach.ts";
import { checkCall, type CallOptions } from "../queue/call.ts";
import { checkIterable, checkWhole } from "../queue/checks.ts";
import { nameOf, queueKeys, type Named } from "../queue/keys.ts";
import type { MessageId } from "../queue/message/message.ts";
import type { Payloads } from "../queue/payloads.ts";
import { decoded, type DelayedMessage } from "./delayed-message.ts";

/**
 * The delayed messages of a queue as a collection in the order of the offers, as Redisson's `RDelayedQueue` shows them.
 *
 * `poll` and `remove` take messages out, due or not: they will not be delivered. To take due messages, use a
 * {@link BlockingQueue}.
 *
 * Reads the order from its start, in bounded pages. This is not a snapshot: a message that becomes due while it is read may be
 * missing. Every method rejects with {@link ClosedError} after `close()`, and with {@link RedisError} if Redis refuses a command or
 * its reply is lost.
 */
export class InsertionOrder<T = unknown> {
  readonly #reach: Pick<PlainReach, "delayed">;
  readonly #payloads: Payloads<T>;

  /** @internal Use `DelayedQueue.insertionOrder`. */
  constructor(reach: Pick<PlainReach, "delayed">, payloads: Payloads<T>) {
    this.#reach = reach;
    this.#payloads = payloads;
  }

  /** Returns the payload that was inserted first; it need not be due first. Undefined if no message is delayed. */
  async peek(options?: CallOptions): Promise<T | undefined> {
    for await (const { payload } of this.#reach.delayed.inOrder(1, checkCall(options)))
      return this.#payloads.decode(payload);
    return undefined;
  }

  /** Returns the payloads of all delayed messages, in insertion order. */
  async readAll(options?: CallOptions): Promise<T[]> {
    const messages = new Map<MessageId, T>();
    const call = checkCall(options);
    const all = () => this.#reach.delayed.inOrder(undefined, call);
    for await (const { id, payload } of decoded(all, this.#payloads)) messages.set(id, payload);
    return [...messages.values()];
  }

  /** Whether a message with this payload is delayed. Compares encoded bytes, and may read all messages. */
  async contains(payload: T, options?: CallOptions): Promise<boolean> {
    const wanted = [this.#payloads.encode(payload)];
    for await (const { isMatch } of this.#reach.delayed.search(wanted, checkCall(options)))
      if (isMatch) return true;
    return false;
  }

  /**
   * Takes out the message with this payload that was inserted first; returns whether there was one. That message will
   * not be delivered. Compares encoded bytes, and may read all messages.
   */
  async remove(payload: T, options?: CallOptions): Promise<boolean> {
    const call = checkCall(options);
    const wanted = [this.#payloads.encode(payload)];
    const { delayed } = this.#reach;
    for await (const { element, isMatch } of delayed.search(wanted, call)) {
      if (isMatch && (await delayed.remove([element], call)) === 1) return true;
    }
    return false;
  }

  /** Takes out every message with one of these payloads; returns how many. Reads all messages. */
  async removeAll(payloads: Iterable<T>, options?: CallOptions): Promise<number> {
    return await this.#removeWhere(payloads, ({ isMatch }) => isMatch, options);
  }

  /** Takes out every message with none of these payloads; returns how many. Reads all messages. */
  async retainAll(payloads: Iterable<T>, options?: CallOptions): Promise<number> {
    return await this.#removeWhere(payloads, ({ isMatch }) => !isMatch, options);
  }

  /**
   * Takes out the message that was inserted first, due or not, and returns its payload; undefined if no message is
   * delayed. The message will not be delivered.
   *
   * @throws {DecodeError} if the codec cannot read the payload; its bytes are in the quarantine.
   */
  async poll(limit?: undefined, options?: CallOptions): Promise<T | undefined>;
  /**
   * Takes out the first `limit` messages by insertion, and returns their payloads.
   *
   * Payloads that the codec cannot read are left out, put into the quarantine, and reported by an `error` event.
   */
  async poll(limit: number, options?: CallOptions): Promise<T[]>;
  async poll(limit?: number, options?: CallOptions): Promise<T | undefined | T[]> {
    const call = checkCall(options);
    if (limit === undefined) {
      const [payload] = await this.#reach.delayed.poll(1, call);
      return payload && (await this.#payloads.decodeTaken(payload));
    }
    checkWhole("limit", limit, 0, Number.MAX_SAFE_INTEGER);
    this.#reach.delayed.checkOpen();
    return await this.#payloads.decodeAllTaken(await this.#reach.delayed.poll(limit, call));
  }

  /**
   * Iterates over all delayed messages in insertion order, reading a page at a time.
   *
   * Messages that stay in the queue are never missed. A message may appear twice if the insertion order is compacted
   * during the iteration. Messages that the codec cannot read are left out, and reported by an `error` event.
   */
  [Symbol.asyncIterator](): AsyncGenerator<DelayedMessage<T>, void, void> {
    return decoded(() => this.#reach.delayed.inOrder(), this.#payloads);
  }

  /**
   * Moves the message inserted last, due or not, to the head of another queue's ready messages, and returns its
   * payload; undefined if no message is delayed. Both queues need the same codec, and on a Cluster the same slot.
   *
   * @throws {TypeError} if `other` cannot name a queue; nothing was moved.
   * @throws {DecodeError} if the codec cannot read the payload; the message was moved nevertheless.
   */
  async pollLastAndOfferFirstTo(other: Named, options?: CallOptions): Promise<T | undefined> {
    const { ready } = queueKeys(nameOf(other));
    const payload = await this.#reach.delayed.pollNewestTo(ready, checkCall(options));
    return payload && this.#payloads.decode(payload);
  }

  async #removeWhere(
    payloads: Iterable<T>,
    isChosen: (hit: SearchHit) => boolean,
    options?: CallOptions,
  ): Promise<number> {
    const call = checkCall(options);
    checkIterable("payloads", payloads);
    const wanted = Array.from(payloads, (payload) => this.#payloads.encode(payload));
    // Find all before removing any: a removal shifts the elements that are still to be read.
    const chosen: Buffer[] = [];
    const { delayed } = this.#reach;
    for await (const hit of delayed.search(wanted, call))
      if (isChosen(hit)) chosen.push(hit.element);
    return await delayed.remove(chosen, call);
  }
}
