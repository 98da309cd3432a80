import { clearQuarantine } from "../lua/ready/clear-quarantine.ts";
import { requeue } from "../lua/ready/requeue.ts";
import { asNumber } from "../lua/reply.ts";
import { callSignal, checkWhole } from "./checks.ts";
import type { CallOptions } from "./options.ts";
import { listed } from "./listed.ts";
import type { Queue } from "./queue.ts";

/**
 * What nobody could read of a queue's messages, as bytes. Nothing leaves it by itself.
 *
 * Two kinds of things are in it: payloads that a codec could not decode, and whole delayed messages of an
 * unknown layout, which somebody else wrote. Every method rejects with {@link ClosedError} after `close()`,
 * and with {@link RedisError} if Redis refuses a command or its reply is lost.
 */
export class Quarantine {
  readonly #queue: Queue;

  /** @internal Use `DelayedQueue.quarantine` or `BlockingQueue.quarantine`. */
  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** How many payloads and messages are in it. O(1). */
  async size(options?: CallOptions): Promise<number> {
    const signal = callSignal(options);
    const [payloads, messages] = await Promise.all(
      PLACES.map((place) =>
        this.#queue.call(
          "measure the quarantine of",
          (redis, keys) => redis.llen(keys[place]),
          signal,
        ),
      ),
    );
    return asNumber(payloads) + asNumber(messages);
  }

  /**
   * The bytes, which stay there: first the payloads, then the messages of an unknown layout, each oldest first.
   *
   * Read in bounded pages. No snapshot: if something is taken out meanwhile, others may be missing.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, void> {
    for (const place of PLACES) yield* listed(this.#queue, place);
  }

  /**
   * Puts payloads back to the end of the ready messages, oldest first, once a codec can read them; returns how
   * many. `limit` at most; by default all that are there at the beginning.
   *
   * In bounded steps, each of which is carried out wholly or not at all. A payload that still cannot be read
   * comes back to the quarantine when it is taken. Messages of an unknown layout stay, since nobody knows which of their
   * bytes are the payload.
   *
   * @throws {RangeError | TypeError} if `limit` is not a whole number, or negative.
   */
  async requeue(limit?: number, options?: CallOptions): Promise<number> {
    const signal = callSignal(options);
    if (limit !== undefined) checkWhole("limit", limit, 0, Number.MAX_SAFE_INTEGER);
    const there = asNumber(
      await this.#queue.call(
        "measure the quarantine of",
        (redis, keys) => redis.llen(keys.quarantine),
        signal,
      ),
    );
    const wanted = Math.min(limit ?? there, there);
    let moved = 0;
    while (moved < wanted) {
      const args = { limit: Math.min(wanted - moved, STEP), maxBytes: PAGE_BYTES };
      const count = await this.#queue.change("requeue the quarantine of", requeue, args, {
        signal,
      });
      if (count === 0) break;
      moved += count;
    }
    return moved;
  }

  /** Drops all; returns how many. */
  async clear(options?: CallOptions): Promise<number> {
    return await this.#queue.change(
      "clear the quarantine of",
      clearQuarantine,
      {},
      { signal: callSignal(options) },
    );
  }
}

/** Where payloads are, and where messages of an unknown layout are. */
const PLACES = ["quarantine", "unreadable"] as const;

/** How many one script moves, and after how many bytes it stops: some 100 us of Redis's time. */
const STEP = 100;
const PAGE_BYTES = 65_536;
