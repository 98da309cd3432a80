import { clearQuarantine, requeue } from "../lua/ready/quarantine.ts";
import { QuarantineElements } from "../queue/quarantine-elements.ts";
import { checkCall, type CallOptions } from "../queue/call.ts";
import { checkWhole } from "../queue/checks.ts";
import { elementsOf } from "../queue/list-elements.ts";
import type { Parts } from "../partitions/parts/parts.ts";

/**
 * The unreadable messages of a queue, as bytes. They stay until you requeue or clear them.
 *
 * It holds payloads that a codec could not decode, payloads whose `poll` was given up before its reply came, and whole
 * delayed messages of an unknown layout that another program wrote. Every method rejects with {@link ClosedError} after
 * `close()`, and with {@link RedisError} if Redis refuses a command or its reply is lost.
 */
export class Quarantine {
  readonly #parts: Parts;

  /** @internal Use `DelayedQueue.quarantine` or `BlockingQueue.quarantine`. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Returns how many payloads and messages are in it. O(1). */
  async size(options?: CallOptions): Promise<number> {
    const call = checkCall(options);
    return await this.#parts.sum(async ({ queue }) => {
      const elements = new QuarantineElements(queue);
      const sizes = LISTS.map((list) => elements.size(list, call));
      const [payloads = 0, messages = 0] = await Promise.all(sizes);
      return payloads + messages;
    }, call);
  }

  /**
   * Yields the bytes without removing them: first the payloads, then the messages with an unknown layout, each oldest
   * first; in a partitioned queue one partition after another.
   *
   * Reads bounded pages. This is not a snapshot: if something is removed during the iteration, other bytes may be
   * missed.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, void> {
    for (const { queue } of await this.#parts.all()) {
      for (const list of LISTS) yield* elementsOf(queue, list);
    }
  }

  /**
   * Moves payloads to the end of the ready messages, oldest first; returns how many. Use it once a codec can read them.
   * Moves `limit` payloads at most. Defaults to all that are there at the beginning.
   *
   * It works in bounded, atomic steps. A payload that still cannot be read returns to the quarantine when it is taken.
   * Messages with an unknown layout stay: nothing tells which of their bytes are the payload.
   *
   * @throws {RangeError | TypeError} if `limit` is not a whole number, or negative.
   */
  async requeue(limit?: number, options?: CallOptions): Promise<number> {
    const call = checkCall(options);
    if (limit !== undefined) checkWhole("limit", limit, 0, Number.MAX_SAFE_INTEGER);
    let moved = 0;
    for (const { queue } of await this.#parts.all(call)) {
      const there = await new QuarantineElements(queue).size("quarantine", call);
      const last = moved + Math.min((limit ?? Infinity) - moved, there);
      while (moved < last) {
        const args = { limit: Math.min(last - moved, STEP), maxBytes: PAGE_BYTES };
        const count = await queue.change("requeue the quarantine of", requeue, args, call);
        if (count === 0) break;
        moved += count;
      }
    }
    await this.#parts.activity.note({ what: "requeued", count: moved });
    return moved;
  }

  /** Drops everything in it; returns how many payloads and messages it dropped. */
  async clear(options?: CallOptions): Promise<number> {
    const call = checkCall(options);
    const count = await this.#parts.sum(
      ({ queue }) => queue.change("clear the quarantine of", clearQuarantine, {}, call),
      call,
    );
    await this.#parts.activity.note({ what: "quarantine cleared", count });
    return count;
  }
}

/** The keys with payloads, and with messages of an unknown layout. */
const LISTS = ["quarantine", "unreadable"] as const;

/** Payloads per script, and the bytes after which it stops: about 100 us of Redis's time. */
const STEP = 100;
const PAGE_BYTES = 65_536;
