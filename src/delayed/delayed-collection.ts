import type { SearchHit } from "../lua/delayed/pages.ts";
import { checkIterable } from "../queue/checks.ts";
import { checkCall, type CallOptions } from "../queue/call.ts";
import type { MessageId } from "../queue/message/message.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { HandleOptions } from "../queue/queue-handle.ts";
import { DelayedHandle } from "./delayed-handle.ts";
import { decoded } from "./delayed-message.ts";
import type { PartitionedMessages as DelayedFace } from "../partitions/partitioned-messages.ts";

/**
 * The delayed messages of a queue as a collection, in insertion order.
 *
 * The methods read the insertion order from its start, in bounded pages. They do not see a snapshot: a message that
 * becomes due meanwhile may be missing.
 */
export abstract class DelayedCollection<T> extends DelayedHandle<T> {
  readonly #messages: DelayedFace;
  readonly #payloads: Payloads<T>;

  /** @internal */
  protected constructor(open: HandleOptions, messages: DelayedFace, payloads: Payloads<T>) {
    super(open, messages, payloads);
    this.#messages = messages;
    this.#payloads = payloads;
  }

  /** Returns the payload that was inserted first, which need not be due first; undefined if no message is delayed. */
  async peek(options?: CallOptions): Promise<T | undefined> {
    for await (const { payload } of this.#messages.inOrder(1, checkCall(options)))
      return this.#payloads.decode(payload);
    return undefined;
  }

  /** Returns the payloads of all delayed messages, in insertion order. */
  async readAll(options?: CallOptions): Promise<T[]> {
    const messages = new Map<MessageId, T>();
    const all = this.#messages.inOrder(undefined, checkCall(options));
    for await (const { id, payload } of decoded(all, this.#payloads)) messages.set(id, payload);
    return [...messages.values()];
  }

  /** Whether a message with this payload is delayed. Compares encoded bytes, and may read all messages. */
  async contains(payload: T, options?: CallOptions): Promise<boolean> {
    const wanted = [this.#payloads.encode(payload)];
    for await (const { isMatch } of this.#messages.search(wanted, checkCall(options)))
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
    for await (const { element, isMatch } of this.#messages.search(wanted, call)) {
      if (isMatch && (await this.#messages.remove([element], call)) === 1) return true;
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
    for await (const hit of this.#messages.search(wanted, call))
      if (isChosen(hit)) chosen.push(hit.element);
    return await this.#messages.remove(chosen, call);
  }
}
