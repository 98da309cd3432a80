import {
  FIRST_LETTERS,
  clearDead,
  deadPage,
  redrive,
  removeDead,
  type LetterCursor,
  type DeadPage,
} from "../lua/reliable/dead-letters.ts";
import type { Letter } from "../lua/places/dead.ts";
import { asNumber } from "../lua/reply.ts";
import { callOf, checkCall, type Call, type CallOptions } from "../queue/call.ts";
import {
  checkDuration,
  checkIterable,
  checkKey,
  checkMessageId,
  checkOptions,
  checkSignal,
} from "../queue/checks.ts";
import type { FailedAttempt } from "../queue/message/failed-attempt.ts";
import type { MessageHeaders } from "../queue/message/headers.ts";
import { messageIdAt, parseMessageId, type MessageId } from "../queue/message/message.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { Part } from "../partitions/parts/part.ts";
import type { Parts } from "../partitions/parts/parts.ts";
import type { Queue } from "../queue/queue.ts";
import type { LetterFilter } from "../reliable/letter-filter.ts";
import { letterDeed, Letters, NO_CHANGE } from "../reliable/letters.ts";
import { failuresIn, unpackTrailer } from "../queue/message/trailer.ts";
import { LAST_DATE } from "../time/last-date.ts";

/** A message that is no longer delivered: it was rejected, or its last delivery failed. */
export interface DeadLetter<T> {
  /** The message's id, the same as before it died. */
  readonly id: MessageId;
  /** The payload; the last one if several were collected. Undefined if the codec cannot decode it. */
  readonly payload: T | undefined;
  /** What was collected (`onDuplicate: "collect"`), in the order of the offers; undefined for a single payload. */
  readonly payloads?: readonly (T | undefined)[];
  /** The encoded payload. */
  readonly bytes: Buffer;
  /** The business key; undefined if the message was offered without one. */
  readonly key: string | undefined;
  /** The headers; undefined if the message was offered without any. */
  readonly headers: MessageHeaders | undefined;
  /** How many deliveries were made. */
  readonly attempt: number;
  /** Why it died. `"unreadable"` marks a letter in a foreign format, which can only be removed. */
  readonly reason: string;
  /**
   * The last ten failed attempts, oldest first, including those before a redrive. The last one is the attempt that
   * killed the message, with 200 bytes of the `reason`, unless an older release or a foreign program wrote the letter.
   */
  readonly failures: readonly FailedAttempt[];
  /** The consumer group that failed to handle it. Other groups may have handled it. */
  readonly group: string;
  /** When it died, on the Redis server's clock. */
  readonly diedAt: Date;
}

/** Chooses dead letters. A letter has to meet every condition; give at least one. */
export interface DeadLetterFilter {
  /**
   * The reason, in full or as the command `dead reasons` and the dashboard show it, with `#` in place of the parts that
   * differ from message to message.
   */
  readonly reason?: string;
  /** The consumer group that failed to handle the message. */
  readonly group?: string;
  /** Only messages that died longer ago than this many milliseconds. */
  readonly olderThan?: number;
  /** The beginning of the business key. */
  readonly prefix?: string;
  /** The business keys. */
  readonly keys?: Iterable<string>;
}

/** Options of {@link DeadLetters.redrive}. */
export interface RedriveOptions extends CallOptions {
  /** Milliseconds until the messages are due. Defaults to 0. */
  readonly delay?: number;
  /** Whether only to count the letters, and change nothing. Defaults to false. */
  readonly dryRun?: boolean;
}

/**
 * The dead letters of a reliable queue, of all its groups. They stay until they are redriven or removed.
 *
 * Finding the letter of a message reads the letters one after another: O(N), 20 letters per step. Every method
 * rejects with {@link ClosedError} after `close()`, and with {@link RedisError} if Redis refuses a command or its
 * reply is lost.
 */
export class DeadLetters<T = unknown> {
  readonly #parts: Parts;
  readonly #payloads: Payloads<T>;

  /** @internal Use `ReliableQueue.deadLetters`. */
  constructor(parts: Parts, payloads: Payloads<T>) {
    this.#parts = parts;
    this.#payloads = payloads;
  }

  /** Returns the number of dead letters, of all groups. O(1). */
  async size(options?: CallOptions): Promise<number> {
    const call = checkCall(options);
    const doing = "measure the dead letters of";
    return await this.#parts.sum(
      async ({ queue }) =>
        asNumber(await queue.call(doing, (redis, { dead }) => redis.xlen(dead), call)),
      call,
    );
  }

  /**
   * Yields the dead letters that exist when the loop begins, oldest first, and leaves them where they are; in a
   * partitioned queue one partition after another.
   *
   * Reads bounded pages, not a snapshot: a letter that is redriven or removed during the iteration may be missing.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<DeadLetter<T>, void, void> {
    for (const { queue } of await this.#parts.all()) {
      let cursor: LetterCursor | undefined = FIRST_LETTERS;
      while (cursor !== undefined) {
        const args = { ...cursor, limit: STEP, maxBytes: PAGE_BYTES };
        const page: DeadPage = await queue.read("read the dead letters of", deadPage, args);
        for (const letter of page.letters) yield this.#open(letter);
        cursor = page.next;
      }
    }
  }

  /**
   * Makes dead messages retry as if they had never been delivered: the message with this id, `"all"` that are dead at the
   * beginning, or those among them that a filter chooses. Returns the number of redriven letters. A message may have several: one
   * for each group in which it died.
   *
   * Each message goes only to the group that failed to handle it. Attempts count from 1 again; the message keeps its
   * {@link DeadLetter.failures}. Until it is due, the message is retrying, and can be cancelled by its id or key.
   *
   * Unreadable letters stay. O(N), even for one id. Each letter is removed in the same step that puts its message
   * back. If a step fails, the work of the steps before it is done.
   *
   * @throws {TypeError | RangeError} if `which` is neither an id, `"all"` nor a filter, or an option is not legal.
   */
  async redrive(
    which: MessageId | string | DeadLetterFilter,
    options: RedriveOptions = {},
  ): Promise<number> {
    checkOptions("redrive option", options, ["delay", "dryRun", "signal"]);
    const { delay = 0 } = options;
    checkDuration("delay", delay);
    checkSignal(options.signal);
    const isDry = checkDryRun(options.dryRun);
    const call = callOf(options);
    if (typeof which === "object" && which !== null) {
      return await this.#change("redrive", await this.#filter(which, call), { delay, isDry }, call);
    }
    const id = which;
    if (id !== "all") checkMessageId(id, 'or "all"');
    if (isDry) {
      const filter = id === "all" ? {} : { address: parseMessageId(id) };
      return await this.#change("redrive", filter, { delay, isDry }, call);
    }
    const wanted = id === "all" ? "" : parseMessageId(id);
    const count = await this.#eachLetter(async (queue, cursor) => {
      const { channel } = queue.keys;
      const args = { channel, wanted, ...cursor, limit: STEP, maxBytes: SCAN_BYTES, delay };
      const page = await queue.change("redrive the dead letters of", redrive, args, call);
      return { count: page.redriven, next: page.next };
    }, call);
    await this.#parts.activity.note({ what: "redriven", count, detail: id });
    return count;
  }

  /**
   * Removes the letters of the message with this id for good, in all groups; returns whether there were any. O(N).
   *
   * `true` is exact: the message cannot be redriven afterwards. If Redis's reply is lost, the promise rejects.
   *
   * @throws {TypeError} if `id` is not a message id. A business key is not accepted.
   */
  async remove(id: MessageId | string, options?: CallOptions): Promise<boolean>;
  /**
   * Removes for good the letters that a filter chooses among those that exist at the beginning; returns how many. O(N),
   * in bounded steps. If a step fails, the work of the steps before it is done.
   *
   * @throws {TypeError | RangeError} if the filter or an option is not legal.
   */
  async remove(filter: DeadLetterFilter, options?: Omit<RedriveOptions, "delay">): Promise<number>;
  async remove(
    which: MessageId | string | DeadLetterFilter,
    options: Omit<RedriveOptions, "delay"> = {},
  ): Promise<boolean | number> {
    if (typeof which === "object" && which !== null) {
      checkOptions("remove option", options, ["dryRun", "signal"]);
      checkSignal(options.signal);
      const isDry = checkDryRun(options.dryRun);
      const call = callOf(options);
      return await this.#change(
        "remove",
        await this.#filter(which, call),
        { delay: 0, isDry },
        call,
      );
    }
    const id = which;
    checkMessageId(id);
    const call = checkCall(options);
    const wanted = parseMessageId(id);
    const count = await this.#eachLetter(async (queue, cursor) => {
      const args = { wanted, ...cursor, limit: STEP, maxBytes: SCAN_BYTES };
      const doing = "remove from the dead letters of";
      const page = await queue.change(doing, removeDead, args, call);
      return { count: page.removed, next: page.next };
    }, call);
    await this.#parts.activity.note({ what: "letters removed", count, detail: id });
    return count > 0;
  }

  /** Removes all dead letters; returns how many. */
  async clear(options?: CallOptions): Promise<number> {
    const call = checkCall(options);
    const doing = "clear the dead letters of";
    const clear = ({ queue }: Part) => queue.change(doing, clearDead, {}, call);
    const count = await this.#parts.sum(clear, call);
    await this.#parts.activity.note({ what: "letters removed", count, detail: "all" });
    return count;
  }

  /** Redrives or removes the letters that a filter chooses; returns how many, or would. */
  async #change(
    change: "redrive" | "remove",
    filter: LetterFilter,
    how: { readonly delay: number; readonly isDry: boolean },
    call: Call | undefined,
  ): Promise<number> {
    const count = await this.#parts.sum(async ({ queue }) => {
      let last = NO_CHANGE;
      for await (const step of new Letters(queue).changeAll(change, filter, how, call)) last = step;
      return how.isDry ? last.matched : last.done;
    }, call);
    if (!how.isDry) await this.#parts.activity.note(letterDeed(change, filter, count));
    return count;
  }

  /** @throws {TypeError | RangeError} if it is not a legal filter. */
  async #filter(filter: DeadLetterFilter, call: Call | undefined): Promise<LetterFilter> {
    checkOptions("filter", filter, ["reason", "group", "olderThan", "prefix", "keys"]);
    const { olderThan, keys, ...texts } = filter;
    for (const [name, text] of Object.entries(texts)) {
      if (text !== undefined && typeof text !== "string")
        throw new TypeError(`${name} must be a string, got ${typeof text}`);
    }
    if (Object.values(filter).every((condition) => condition === undefined)) {
      throw new TypeError('a filter must have a condition; to mean all letters, say "all"');
    }
    if (olderThan !== undefined) checkDuration("olderThan", olderThan);
    if (keys !== undefined) checkIterable("keys", keys);
    const chosen = keys === undefined ? undefined : new Set(keys);
    for (const key of chosen ?? []) checkKey(key);
    if (olderThan === undefined) return { ...texts, keys: chosen };
    const { queue } = this.#parts.first;
    const now = await queue.call("ask for the time of", (redis) => queue.time(redis), call);
    return { ...texts, keys: chosen, diedBefore: now - olderThan };
  }

  /**
   * Repeats a step in each part until it has reached the last letter; returns the sum of its counts.
   *
   * A message becomes a dead letter in the partition that delivered it, which may not be the one that its id points to
   * now. So even a call about one message asks all partitions.
   */
  #eachLetter(
    step: (
      queue: Queue,
      cursor: LetterCursor,
    ) => Promise<{ readonly count: number; readonly next: LetterCursor | undefined }>,
    call: Call | undefined,
  ): Promise<number> {
    return this.#parts.sum(async ({ queue }) => {
      let sum = 0;
      let cursor: LetterCursor | undefined = FIRST_LETTERS;
      while (cursor !== undefined) {
        const { count, next }: Awaited<ReturnType<typeof step>> = await step(queue, cursor);
        sum += count;
        cursor = next;
      }
      return sum;
    }, call);
  }

  #open(letter: Letter): DeadLetter<T> {
    const { key, headers, collected } = unpackTrailer(letter.trailer);
    const payload = this.#decode(letter.payload);
    return {
      id: messageIdAt(letter.address),
      payload,
      ...(collected !== undefined && {
        payloads: [...collected.map((bytes) => this.#decode(bytes)), payload],
      }),
      bytes: letter.payload,
      key,
      headers,
      attempt: letter.attempts,
      reason: letter.reason,
      failures: failuresIn(letter.trailer),
      group: letter.group,
      diedAt: new Date(Math.min(letter.diedAt, LAST_DATE)),
    };
  }

  #decode(bytes: Buffer): T | undefined {
    try {
      return this.#payloads.decode(bytes);
    } catch {
      // Not reported again: this may be what the message died of.
      return undefined;
    }
  }
}

function checkDryRun(dryRun: unknown = false): boolean {
  if (typeof dryRun === "boolean") return dryRun;
  throw new TypeError(`dryRun must be a boolean, got ${typeof dryRun}`);
}

/** Letters that one script reads, and bytes after which it stops: about 300 us of Redis's time. */
const STEP = 20;
const PAGE_BYTES = 32_768;

/** The bytes after which a script stops if it looks at letters without returning them. */
const SCAN_BYTES = 131_072;
