import { callSignal, checkWhole } from "../queue/checks.ts";
import { queueKeys } from "../queue/keys.ts";
import type { CallOptions } from "../queue/options.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { HandleOptions } from "../queue/queue-handle.ts";
import { DelayedCollection } from "./delayed-collection.ts";
import { decoded, type DelayedMessage } from "./delayed-message.ts";
import type { DelayedFace } from "./delayed-messages.ts";
import type { PlainResult } from "./plain-result.ts";

/**
 * The delayed side of a queue: messages that wait for their deadline.
 *
 * At its deadline a message leaves for the ready side, where a {@link BlockingQueue} of the same
 * name takes it. Made by `Delayline.getDelayedQueue`. It has the face of Redisson's `RDelayedQueue`, and more.
 *
 * Every method rejects with {@link ClosedError} after `close()`, and with {@link RedisError} if Redis
 * refuses a command or its reply is lost.
 */
export class DelayedQueue<T = unknown> extends DelayedCollection<T> {
  readonly #messages: DelayedFace;
  readonly #payloads: Payloads<T>;

  /** @internal Use `Delayline.getDelayedQueue`. */
  constructor(open: HandleOptions, messages: DelayedFace, payloads: Payloads<T>) {
    super(open, messages, payloads);
    this.#messages = messages;
    this.#payloads = payloads;
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

  /**
   * All delayed messages in the order in which they were inserted, read a page at a time.
   *
   * None that stays in the queue is missed. One may come twice, if the insertion order is compacted
   * at that moment. What the codec cannot read is left out, and reported by an `error` event.
   */
  [Symbol.asyncIterator](): AsyncGenerator<DelayedMessage<T>, void, void> {
    return decoded(this.#messages.inOrder(), this.#payloads);
  }

  /**
   * Makes a reliable queue plain again: what is ready in its stream goes to the ready LIST, retries become delayed
   * messages with new ids, and the stream is dropped. For one that is plain nothing changes.
   *
   * First close every client that has a {@link ReliableQueue} of this name, in every process: it would make the stream
   * anew. Plain processes may go on. Nothing is done while a consumer of the stream lives. A stream of more than a
   * thousand messages stays: let them be consumed first. The result says what is in the way. What was in flight for
   * consumers that died goes to the LIST, too. Of several groups' messages each is there once.
   *
   * Ready messages lose their ids, keys and headers. Attempts begin anew. Dead letters stay: redrive or remove them
   * before, or they wait until the queue is reliable again.
   *
   * @throws {TypeError} if this client has opened the queue as a reliable one; nothing was sent.
   */
  async makePlain(options?: CallOptions): Promise<PlainResult> {
    return await this.#messages.makePlain(callSignal(options));
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
}
