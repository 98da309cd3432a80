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
import type { Deed } from "../queue/activity.ts";
import type { Call } from "../queue/call.ts";
import type { Queue } from "../queue/queue.ts";
import { isChosen, type LetterFilter } from "./letter-filter.ts";

export type { LetterHead } from "../lua/reliable/dead-letters.ts";

/** How far a change of dead letters has come. */
export interface LetterChange {
  /** How many letters were looked at. */
  readonly looked: number;
  /** How many of them the filter chose, and the change can be made to. */
  readonly matched: number;
  /** How many were changed. */
  readonly done: number;
}

export const NO_CHANGE: LetterChange = { looked: 0, matched: 0, done: 0 };

export function added(one: LetterChange, other: LetterChange): LetterChange {
  return {
    looked: one.looked + other.looked,
    matched: one.matched + other.matched,
    done: one.done + other.done,
  };
}

/** What the log says of a change. */
export function letterDeed(
  change: "redrive" | "remove",
  { reason, group, diedBefore, prefix, keys }: LetterFilter,
  count: number,
): Deed {
  const conditions = [
    reason !== undefined && `reason ${reason}`,
    group !== undefined && `group ${group}`,
    diedBefore !== undefined && `died before ${new Date(diedBefore).toISOString()}`,
    prefix !== undefined && `keys ${prefix}...`,
    keys !== undefined && `${keys.size} keys`,
  ];
  const detail = conditions.filter((one) => one !== false).join(", ") || "all";
  return { what: change === "redrive" ? "redriven" : "letters removed", count, detail };
}

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

  /**
   * Redrives or removes the letters that the filter chooses, of those that exist when it begins. Yields how far it has come after
   * each step; the last one is the result. A caller may stop at any time. O(N), also in the letters that are not chosen. Each step
   * changes up to 25 letters at once; a letter that another process has changed first is not counted. Unreadable letters cannot be
   * redriven, and stay.
   */
  async *changeAll(
    change: "redrive" | "remove",
    filter: LetterFilter,
    { delay, isDry }: { readonly delay: number; readonly isDry: boolean },
    call?: Call,
  ): AsyncGenerator<LetterChange, void, void> {
    let sum = NO_CHANGE;
    for await (const heads of this.heads(call)) {
      const chosen = heads.filter(
        (head) => isChosen(head, filter) && (change === "remove" || head.isReadable),
      );
      let done = 0;
      for (const batch of isDry ? [] : batched(chosen)) {
        const entries = batch.map(({ entryId }) => entryId);
        done +=
          change === "redrive"
            ? await this.redrive(entries, delay, call)
            : await this.remove(entries, call);
      }
      sum = added(sum, { looked: heads.length, matched: chosen.length, done });
      yield sum;
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

/** Cuts letters into batches that one script may write. */
function* batched(heads: readonly LetterHead[]): Generator<readonly LetterHead[]> {
  let batch: LetterHead[] = [];
  let bytes = 0;
  for (const head of heads) {
    if (batch.length >= BATCH || (batch.length > 0 && bytes + head.size > BATCH_BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(head);
    bytes += head.size;
  }
  if (batch.length > 0) yield batch;
}

/** Letters per script that writes messages again, and their bytes: about 500 us of Redis's time. */
const BATCH = 25;
const BATCH_BYTES = 65_536;
