import {
  FIRST_LETTERS,
  deadHeads,
  redriveLetters,
  removeLetters,
  type HeadPage,
  type LetterCursor,
  type LetterHead,
} from "../lua/reliable/dead-letters.ts";
import { asNumber } from "../lua/reply.ts";
import type { Call } from "../queue/call.ts";
import type { Queue } from "../queue/queue.ts";

export type { LetterHead } from "../lua/reliable/dead-letters.ts";

/**
 * The dead letters of one part of a queue, without their payloads, which stay in Redis: to count many and to choose
 * some. Each is known by its entry, so a change of a chosen letter is O(log N), and sent again it changes nothing.
 */
export class Letters {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** How many there are. O(1). */
  async size(call?: Call): Promise<number> {
    const doing = "measure the dead letters of";
    return asNumber(await this.#queue.call(doing, (redis, { dead }) => redis.xlen(dead), call));
  }

  /** Yields those that exist when the reading begins, oldest first, up to 15 at a time. */
  async *heads(call?: Call): AsyncGenerator<readonly LetterHead[], void, void> {
    let cursor: LetterCursor | undefined = FIRST_LETTERS;
    while (cursor !== undefined) {
      const args = { ...cursor, limit: STEP, maxBytes: SCAN_BYTES };
      const doing = "read the dead letters of";
      const page: HeadPage = await this.#queue.read(doing, deadHeads, args, call);
      yield page.heads;
      cursor = page.next;
    }
  }

  /** Makes the messages of these letters retry in `delay` milliseconds; returns how many. Twenty-five at most. */
  async redrive(entries: readonly string[], delay: number, call?: Call): Promise<number> {
    const rows = entries.map((entry) => ({ entry }));
    const args = { channel: this.#queue.keys.channel, delay };
    const doing = "redrive the dead letters of";
    return await this.#queue.change(doing, redriveLetters, args, { ...call, rows });
  }

  /** Removes these letters for good; returns how many there were. */
  async remove(entries: readonly string[], call?: Call): Promise<number> {
    const rows = entries.map((entry) => ({ entry }));
    const doing = "remove from the dead letters of";
    return await this.#queue.change(doing, removeLetters, {}, { ...call, rows });
  }
}

/** Letters that one script looks at, and bytes after which it stops: about 200 us of Redis's time. */
const STEP = 15;
const SCAN_BYTES = 131_072;
