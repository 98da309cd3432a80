import { FIRST_LETTERS, type LetterCursor } from "../lua/fragments/failed/each-letter.ts";
import type { Letter } from "../lua/fragments/failed/letter.ts";
import { clearDead } from "../lua/reliable/dead/clear-dead.ts";
import { deadPage, type DeadPage } from "../lua/reliable/dead/dead-page.ts";
import { redrive } from "../lua/reliable/dead/redrive.ts";
import { removeDead } from "../lua/reliable/dead/remove-dead.ts";
import { asNumber } from "../lua/reply.ts";
import {
  callSignal,
  checkDuration,
  checkMessageId,
  checkOptions,
  checkSignal,
} from "../queue/checks.ts";
import type { FailedAttempt } from "../queue/message/failed-attempt.ts";
import type { MessageHeaders } from "../queue/message/headers.ts";
import { messageIdAt, parseMessageId, type MessageId } from "../queue/message/message.ts";
import type { CallOptions } from "../queue/options.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { Queue } from "../queue/queue.ts";
import { failuresIn, unpackTrailer } from "../queue/message/trailer.ts";
import { LAST_DATE } from "../time/last-date.ts";

/** A message that will not be delivered any more: it was rejected, or had too many deliveries. */
export interface DeadLetter<T> {
  /** The id that the message always had. */
  readonly id: MessageId;
  /** Undefined if the codec cannot read it. */
  readonly payload: T | undefined;
  /** The payload, as the codec wrote it. */
  readonly bytes: Buffer;
  /** The business key, if it was offered with one. */
  readonly key: string | undefined;
  /** Its headers, if it was offered with some. */
  readonly headers: MessageHeaders | undefined;
  /** How many deliveries were made. */
  readonly attempt: number;
  /** Why it died. `"unreadable"`: the letter is none of ours, and can only be removed. */
  readonly reason: string;
  /**
   * The attempts that have failed, oldest first: the last ten, those before a redrive among them. The last one is that
   * of which the message died, with 200 bytes of the `reason`, unless an older release or somebody else wrote the letter.
   */
  readonly failures: readonly FailedAttempt[];
  /** The consumer group that could not handle it. Others may have. */
  readonly group: string;
  /** On the Redis server's clock. */
  readonly diedAt: Date;
}

/** Options of {@link DeadLetters.redrive}. */
export interface RedriveOptions extends CallOptions {
  /** How long the messages wait before they are delivered, in milliseconds. Defaults to 0. */
  readonly delay?: number;
}

/**
 * The dead letters of a reliable queue, of all its groups. Nothing leaves them by itself.
 *
 * A letter is found by its message's id by reading, a hundred letters per step: O(N) in the number of letters.
 * Every method rejects with {@link ClosedError} after `close()`, and with {@link RedisError} if Redis refuses a
 * command or its reply is lost.
 */
export class DeadLetters<T = unknown> {
  readonly #queue: Queue;
  readonly #payloads: Payloads<T>;

  /** @internal Use `ReliableQueue.deadLetters`. */
  constructor(queue: Queue, payloads: Payloads<T>) {
    this.#queue = queue;
    this.#payloads = payloads;
  }

  /** How many dead letters there are, of all groups. O(1). */
  async size(options?: CallOptions): Promise<number> {
    const signal = callSignal(options);
    const send = this.#queue.call(
      "measure the dead letters of",
      (redis, { dead }) => redis.xlen(dead),
      signal,
    );
    return asNumber(await send);
  }

  /**
   * The dead letters that are there when the loop begins, oldest first. They stay.
   *
   * Read in bounded pages. No snapshot: what is redriven or removed meanwhile may be missing.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<DeadLetter<T>, void, void> {
    let cursor: LetterCursor | undefined = FIRST_LETTERS;
    while (cursor !== undefined) {
      const args = { ...cursor, limit: STEP, maxBytes: PAGE_BYTES };
      const page: DeadPage = await this.#queue.read("read the dead letters of", deadPage, args);
      for (const letter of page.letters) yield this.#open(letter);
      cursor = page.next;
    }
  }

  /**
   * Lets messages be delivered again, as if it were the first time: the one with this id, or `"all"` that are dead
   * when it begins. Each goes to the group that could not handle it, and to no other. Returns how many letters
   * were redriven, which for one message may be several: one for each group.
   *
   * Attempts are counted from 1 again, and the message keeps its {@link DeadLetter.failures}.
   *
   * Until it is due the message is retrying, and can be cancelled by its id. A letter is
   * removed with the step that puts its message back. Unreadable letters stay. O(N), also for one id; if a
   * step fails, what the steps before it did is done.
   *
   * @throws {TypeError | RangeError} if `id` is neither an id nor `"all"`, or an option is not legal.
   */
  async redrive(id: MessageId | string, options: RedriveOptions = {}): Promise<number> {
    if (id !== "all") checkMessageId(id, 'or "all"');
    checkOptions("redrive option", options, ["delay", "signal"]);
    const { delay = 0, signal } = options;
    checkDuration("delay", delay);
    checkSignal(signal);
    const { channel } = this.#queue.keys;
    const wanted = id === "all" ? "" : parseMessageId(id);
    let count = 0;
    await throughout(async (cursor) => {
      const args = { channel, wanted, ...cursor, limit: STEP, maxBytes: SCAN_BYTES, delay };
      const page = await this.#queue.change("redrive the dead letters of", redrive, args, {
        signal,
      });
      count += page.redriven;
      return page.next;
    });
    return count;
  }

  /**
   * Removes the message with this id for good, whichever groups it died in; returns whether it was there. O(N).
   *
   * `true`: nobody will redrive it. The verdict is exact; if Redis's reply is lost with the connection, the promise
   * rejects.
   *
   * @throws {TypeError} if `id` is no message id. A business key is none.
   */
  async remove(id: MessageId | string, options?: CallOptions): Promise<boolean> {
    checkMessageId(id);
    const signal = callSignal(options);
    const wanted = parseMessageId(id);
    let count = 0;
    await throughout(async (cursor) => {
      const args = { wanted, ...cursor, limit: STEP, maxBytes: SCAN_BYTES };
      const page = await this.#queue.change("remove from the dead letters of", removeDead, args, {
        signal,
      });
      count += page.removed;
      return page.next;
    });
    return count > 0;
  }

  /** Drops all dead letters; returns how many. */
  async clear(options?: CallOptions): Promise<number> {
    const signal = callSignal(options);
    return await this.#queue.change("clear the dead letters of", clearDead, {}, { signal });
  }

  #open(letter: Letter): DeadLetter<T> {
    const { key, headers } = unpackTrailer(letter.trailer);
    return {
      id: messageIdAt(letter.address),
      payload: this.#decode(letter.payload),
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
      // Not reported: it may be why the message is here.
      return undefined;
    }
  }
}

/** Takes steps through the letters, up to the last. */
async function throughout(
  step: (cursor: LetterCursor) => Promise<LetterCursor | undefined>,
): Promise<void> {
  let cursor: LetterCursor | undefined = FIRST_LETTERS;
  while (cursor !== undefined) cursor = await step(cursor);
}

/** How many letters one script reads, and after how many bytes it stops: some 300 us of Redis's time. */
const STEP = 20;
const PAGE_BYTES = 32_768;

/** Letters that are only looked at, and not sent. */
const SCAN_BYTES = 131_072;
