import { checkCall, type CallOptions } from "../queue/call.ts";
import { checkIterable } from "../queue/checks.ts";
import type { Payloads } from "../queue/payloads.ts";
import { QueueHandle, type HandleOptions } from "./queue-handle.ts";
import type { PartitionedReady as ReadyFace } from "../partitions/taking/partitioned-ready.ts";

/** The operations on ready messages other than taking: put, read and drop. */
export abstract class ReadyHandle<T> extends QueueHandle {
  readonly #list: ReadyFace;
  readonly #payloads: Payloads<T>;

  /** @internal */
  protected constructor(open: HandleOptions, list: ReadyFace, payloads: Payloads<T>) {
    super(open);
    this.#list = list;
    this.#payloads = payloads;
  }

  /**
   * Puts a message at the end of the ready messages, without a delay.
   *
   * If the connection is lost before the reply arrives, ioredis may send the command again, which may store the message
   * twice: a ready message has no id. `DelayedQueue.offer` with a delay of 0 stores it once.
   *
   * @throws {EncodeError | PayloadTooLargeError} if the payload has no legal form; nothing was sent.
   */
  async put(payload: T, options?: CallOptions): Promise<void> {
    await this.putMany([payload], options);
  }

  /** Puts messages at the end of the ready messages, in this order. Otherwise like {@link put}. */
  async putMany(payloads: Iterable<T>, options?: CallOptions): Promise<void> {
    checkIterable("payloads", payloads);
    const call = checkCall(options);
    this.#list.checkOpen();
    const encoded = Array.from(payloads, (payload) => this.#payloads.encode(payload));
    for (let i = 0; i < encoded.length; i += PUT_BATCH) {
      await this.#list.push(encoded.slice(i, i + PUT_BATCH), call);
    }
  }

  /** Returns the oldest ready payload without taking it; undefined if there is none. */
  async peek(options?: CallOptions): Promise<T | undefined> {
    const payload = await this.#list.peek(checkCall(options));
    return payload && this.#payloads.decode(payload);
  }

  /** Returns the number of ready messages. O(1). */
  async size(options?: CallOptions): Promise<number> {
    return await this.#list.size(checkCall(options));
  }

  /**
   * Returns all ready payloads, oldest first, without taking them. One snapshot, read by a single O(N) command.
   *
   * Payloads that the codec cannot read are left out, and reported by an `error` event.
   */
  async readAll(options?: CallOptions): Promise<T[]> {
    return this.#payloads.decodeAll(await this.#list.readAll(checkCall(options)));
  }

  /** Drops all ready messages; returns how many. Delayed messages stay. */
  async clear(options?: CallOptions): Promise<number> {
    return await this.#list.clear(checkCall(options));
  }
}

/** Messages per command. */
const PUT_BATCH = 100;
