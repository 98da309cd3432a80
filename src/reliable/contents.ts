import { FIRST_LETTERS, type LetterCursor } from "../lua/fragments/failed/each-letter.ts";
import { consumers, type ConsumerInfo } from "../lua/reliable/consumers.ts";
import { deadPage, type DeadPage } from "../lua/reliable/dead/dead-page.ts";
import { findDead } from "../lua/reliable/dead/find-dead.ts";
import { getRetries } from "../lua/reliable/retries/get-retries.ts";
import { groups } from "../lua/reliable/groups.ts";
import { openGroup } from "../lua/reliable/open-group.ts";
import { retryPage } from "../lua/reliable/retries/retry-page.ts";
import { streamPage, type StreamPage } from "../lua/reliable/stream-page.ts";
import { isMessageId, parseMessageId } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";

/** A message of a reliable queue that is not delayed, as bytes; each group's by itself. */
export interface Content {
  readonly state: "retrying" | "ready" | "in flight" | "dead";
  /** The message's address, which its id is made of. */
  readonly address: Buffer;
  readonly payload: Buffer;
  /** What else it carries; see `trailer.ts`. */
  readonly trailer: Buffer;
  /** How many deliveries were made, the one in flight included. */
  readonly attempts: number;
  /** The group that it is for; undefined if it is for all. */
  readonly group: string | undefined;
  /** When its next attempt is due (epoch ms), if it is retrying. */
  readonly due?: number;
  /** When it became ready (epoch ms), the last time, if it is ready or in flight. */
  readonly readyAt?: number;
  /** The consumer that has it, if it is in flight. */
  readonly consumer?: string;
  /** For how many milliseconds, since the consumer took it or renewed its lease on it. */
  readonly heldFor?: number;
  /** Why it is dead. `"unreadable"`: the letter is none of ours. */
  readonly reason?: string;
  /** When it died (epoch ms). */
  readonly diedAt?: number;
}

/**
 * What is in a reliable queue besides delayed messages: retries, what is ready or in flight, dead letters. Nothing is
 * moved or taken.
 *
 * Everything is read in pages of 20 and of 32 kB, 128 kB where payloads are only looked at and not sent. So it is
 * O(N) in all. `idOrKey` narrows it to one message. No snapshot: what moves meanwhile may be met twice, or not at all.
 */
export class Contents {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** What waits for a retry. By an id O(log N). */
  async *retries(idOrKey = "", signal?: AbortSignal): AsyncGenerator<Content, void, void> {
    if (isMessageId(idOrKey)) {
      const address = parseMessageId(idOrKey);
      const found = await this.#queue.read(
        "look into",
        getRetries,
        { wanted: address },
        { signal },
      );
      for (const retry of found) yield { ...retry, address, state: "retrying" };
      return;
    }
    const args = { key: idOrKey, maxBytes: idOrKey === "" ? PAGE_BYTES : SCAN_BYTES };
    for await (const names of this.#retryNames(signal)) {
      for (let i = 0; i < names.length;) {
        const rows = names.slice(i, i + STEP).map((name) => ({ name }));
        const page = await this.#queue.read("look into", retryPage, args, { rows, signal });
        for (const retry of page.retries) yield { ...retry, state: "retrying" };
        i += page.lookedUp;
      }
    }
  }

  /** What is in the stream, oldest first: ready for all groups, or for one, or in flight. */
  async *stream(idOrKey = "", signal?: AbortSignal): AsyncGenerator<Content, void, void> {
    const args = { ...wantedOf(idOrKey), limit: STEP };
    let after: string | undefined = "";
    while (after !== undefined) {
      const all = { ...args, after };
      const page: StreamPage = await this.#queue.read("look into", streamPage, all, { signal });
      for (const claimed of page.entries) yield* contentsOf(claimed, page.groupCount);
      after = page.next;
    }
  }

  /** Dead letters, oldest first, unreadable ones included. */
  async *letters(idOrKey = "", signal?: AbortSignal): AsyncGenerator<Content, void, void> {
    const { wanted, key, maxBytes } = wantedOf(idOrKey);
    let cursor: LetterCursor | undefined = FIRST_LETTERS;
    while (cursor !== undefined) {
      const args = { ...cursor, limit: STEP, maxBytes };
      const doing = "read the dead letters of";
      const page: DeadPage =
        idOrKey === ""
          ? await this.#queue.read(doing, deadPage, args, { signal })
          : await this.#queue.read(doing, findDead, { ...args, wanted, key }, { signal });
      for (const letter of page.letters) yield { ...letter, state: "dead" };
      cursor = page.next;
    }
  }

  /** The names of the consumer groups; none where nobody has made the stream. */
  groups(signal?: AbortSignal): Promise<string[]> {
    return this.#queue.read("look at", groups, {}, { signal });
  }

  /** The consumers of a group, the dead among them until they are struck out. */
  consumers(group: string, signal?: AbortSignal): Promise<ConsumerInfo[]> {
    return this.#queue.read("look at", consumers, { group }, { signal });
  }

  /** Makes a group, and the stream with it, where they are missing. The group is given all that is in the stream. */
  async makeGroup(group: string, signal?: AbortSignal): Promise<void> {
    const args = { channel: this.#queue.keys.channel, group, start: "0" };
    await this.#queue.read("make a group of", openGroup, args, { signal });
  }

  /** The names of all retries, about 20 at a time. One that stays comes at least once. */
  async *#retryNames(signal?: AbortSignal): AsyncGenerator<Buffer[], void, void> {
    let cursor = "0";
    do {
      const [next, found] = await this.#queue.call(
        "look into",
        (redis, keys) => redis.zscanBuffer(keys.retries, cursor, "COUNT", STEP),
        signal,
      );
      cursor = String(next);
      yield found.filter((_, i) => i % 2 === 0);
    } while (cursor !== "0");
  }
}

/** An entry once for all groups as long as none has been given it, and else once for each that has not finished it. */
function* contentsOf(
  { entry, claims }: StreamPage["entries"][number],
  groupCount: number,
): Generator<Content, void, void> {
  const { entryId, address, payload, trailer, attempts } = entry;
  const readyAt = Number(entryId.split("-")[0]);
  const common = { address, payload, trailer, readyAt };
  const isNew = claims.every(({ consumer }) => consumer === undefined);
  if (entry.group === undefined && isNew && claims.length === Math.max(1, groupCount)) {
    yield { ...common, state: "ready", attempts, group: undefined };
    return;
  }
  for (const { group, consumer, idle, deliveries } of claims) {
    if (consumer === undefined) yield { ...common, state: "ready", attempts, group };
    else {
      const made = attempts + deliveries;
      yield { ...common, state: "in flight", attempts: made, group, consumer, heldFor: idle };
    }
  }
}

/** The arguments that narrow a page to one message. */
function wantedOf(idOrKey: string): {
  readonly wanted: Buffer | "";
  readonly key: string;
  readonly maxBytes: number;
} {
  const maxBytes = idOrKey === "" ? PAGE_BYTES : SCAN_BYTES;
  if (isMessageId(idOrKey)) return { wanted: parseMessageId(idOrKey), key: "", maxBytes };
  return { wanted: "", key: idOrKey, maxBytes };
}

/** How many of them one script reads, and after how many bytes it stops: some 300 us of Redis's time. */
const STEP = 20;
const PAGE_BYTES = 32_768;

/** Where they are only looked at, and not sent. */
const SCAN_BYTES = 131_072;
