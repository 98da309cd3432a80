import {
  FIRST_LETTERS,
  deadPage,
  findDead,
  type LetterCursor,
  type DeadPage,
} from "../lua/reliable/dead-letters.ts";
import { consumers, type ConsumerInfo } from "../lua/reliable/consumers.ts";
import { getRetries, retryPage } from "../lua/reliable/retries.ts";
import { groups, openGroup } from "../lua/reliable/groups.ts";
import { inFlightPage, type InFlightPage } from "../lua/reliable/in-flight-page.ts";
import { streamPage, type StreamPage } from "../lua/reliable/stream-page.ts";
import type { Place } from "../nouns/places.ts";
import type { Call } from "../queue/call.ts";
import { isMessageId, parseMessageId } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";

/** A message of a reliable queue that is not delayed, as bytes. A message in several groups appears once for each. */
export interface Content {
  readonly state: Exclude<Place, "delayed" | "quarantined">;
  /** Its entry, in the stream or among the dead letters; undefined if it is retrying. */
  readonly entryId?: string;
  /** The message's address, from which its id is made. */
  readonly address: Buffer;
  readonly payload: Buffer;
  /** The key, headers and failures; see `trailer.ts`. */
  readonly trailer: Buffer;
  /** How many deliveries were made, including the one in flight; not one that it still waits for. */
  readonly attempts: number;
  /** The group that it is for; undefined for all groups. */
  readonly group: string | undefined;
  /** When its next attempt is due (epoch ms), if it is retrying. */
  readonly due?: number;
  /** When it last became ready (epoch ms), if it is ready or in flight, and not held back. */
  readonly readyAt?: number;
  /** When its next attempt may begin (epoch ms), if it is in flight and waits for that, in strict order. */
  readonly heldBackUntil?: number;
  /** The consumer that it is in flight for. */
  readonly consumer?: string;
  /** When that consumer got it (epoch ms); undefined while it waits for its turn in strict order. */
  readonly takenAt?: number;
  /** Why it is dead; `"unreadable"` for a letter in a foreign format. */
  readonly reason?: string;
  /** When it died (epoch ms). */
  readonly diedAt?: number;
}

/** What one step of a reading found. */
export interface ContentPage {
  readonly contents: readonly Content[];
  /**
   * Up to when messages were read, by when they became ready or died (epoch ms); Infinity after the last page. Undefined
   * for retries, which are read in no order.
   */
  readonly readTo?: number;
}

/**
 * Reads the messages of a reliable queue that are not delayed: retrying, ready, in flight and dead ones. Moves and
 * takes nothing.
 *
 * It reads in pages of 12 messages and 32 kB, or 25 messages and 128 kB where a script only looks at payloads: O(N) in
 * all. `idOrKey` restricts it to one message; with an id, reading begins an hour before the deadline that the id shows,
 * since a message becomes ready and dies after that. It is not a snapshot: a message that moves while it reads may be
 * read twice, or not at all.
 */
export class Contents {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** The retrying messages. O(log N) with an id. */
  async *retries(idOrKey = "", call?: Call): AsyncGenerator<Content, void, void> {
    for await (const { contents } of this.retryPages(idOrKey, call)) yield* contents;
  }

  /** The retrying messages, step by step. */
  async *retryPages(idOrKey = "", call?: Call): AsyncGenerator<ContentPage, void, void> {
    if (isMessageId(idOrKey)) {
      const address = parseMessageId(idOrKey);
      const found = await this.#queue.read("look into", getRetries, { wanted: address }, call);
      yield { contents: found.map((retry) => ({ ...retry, address, state: "retrying" })) };
      return;
    }
    const args = { key: idOrKey, maxBytes: idOrKey === "" ? PAGE_BYTES : SCAN_BYTES };
    for await (const names of this.#retryNames(call)) {
      for (let i = 0; i < names.length;) {
        const rows = names.slice(i, i + STEP).map((name) => ({ name }));
        const page = await this.#queue.read("look into", retryPage, args, { ...call, rows });
        yield { contents: page.retries.map((retry) => ({ ...retry, state: "retrying" })) };
        i += page.lookedUp;
      }
    }
  }

  /** The messages in the stream, oldest first: ready for all groups or for one, or in flight. */
  async *stream(idOrKey = "", call?: Call): AsyncGenerator<Content, void, void> {
    for await (const { contents } of this.streamPages(idOrKey, call)) yield* contents;
  }

  /** The messages in the stream, step by step. */
  async *streamPages(idOrKey = "", call?: Call): AsyncGenerator<ContentPage, void, void> {
    const args = wantedOf(idOrKey);
    let after: string | undefined = startOf(idOrKey);
    while (after !== undefined) {
      const all = { ...args, after };
      const page: StreamPage = await this.#queue.read("look into", streamPage, all, call);
      after = page.next;
      const contents = page.entries.flatMap((claimed) => [...contentsOf(claimed, page.groupCount)]);
      yield { contents, readTo: timeOf(after) };
    }
  }

  /** The messages in flight, those of each group in the order of the stream. O(N) in these alone. */
  async *inFlight(call?: Call): AsyncGenerator<Content, void, void> {
    for (const group of await this.groups(call)) {
      let after: string | undefined = "";
      while (after !== undefined) {
        const args = { group, after, limit: STEP, maxBytes: PAGE_BYTES };
        const page: InFlightPage = await this.#queue.read("look into", inFlightPage, args, call);
        for (const { entry, ...claim } of page.entries) {
          const claims = [{ group, ...claim }];
          // An entry for another group has not been acknowledged yet.
          if (entry.group === undefined || entry.group === group)
            yield* contentsOf({ entry, claims }, 1);
        }
        after = page.next;
      }
    }
  }

  /** The dead letters, oldest first, including unreadable ones. */
  async *letters(idOrKey = "", call?: Call): AsyncGenerator<Content, void, void> {
    for await (const { contents } of this.letterPages(idOrKey, call)) yield* contents;
  }

  /** The dead letters, step by step. */
  async *letterPages(idOrKey = "", call?: Call): AsyncGenerator<ContentPage, void, void> {
    const { wanted, key, ...limits } = wantedOf(idOrKey);
    let cursor: LetterCursor | undefined = { ...FIRST_LETTERS, after: startOf(idOrKey) };
    while (cursor !== undefined) {
      const args = { ...cursor, ...limits };
      const doing = "read the dead letters of";
      const page: DeadPage =
        idOrKey === ""
          ? await this.#queue.read(doing, deadPage, args, call)
          : await this.#queue.read(doing, findDead, { ...args, wanted, key }, call);
      cursor = page.next;
      const contents = page.letters.map((one): Content => ({ ...one, state: "dead" }));
      yield { contents, readTo: timeOf(cursor?.after) };
    }
  }

  /** The names of the consumer groups; none without a stream. */
  groups(call?: Call): Promise<string[]> {
    return this.#queue.read("look at", groups, {}, call);
  }

  /** The consumers of a group, including dead ones that were not removed yet. */
  consumers(group: string, call?: Call): Promise<ConsumerInfo[]> {
    return this.#queue.read("look at", consumers, { group }, call);
  }

  /** Creates a group and its stream if they are missing. A new group starts with the oldest entry. */
  async makeGroup(group: string, call?: Call): Promise<void> {
    const args = { channel: this.#queue.keys.channel, group, start: "0" };
    await this.#queue.read("create a group of", openGroup, args, call);
  }

  /** The names of all retries, about 12 at a time. A retry that stays is among them at least once. */
  async *#retryNames(call?: Call): AsyncGenerator<Buffer[], void, void> {
    let cursor = "0";
    do {
      const [next, found] = await this.#queue.call(
        "look into",
        (redis, keys) => redis.zscanBuffer(keys.retries, cursor, "COUNT", STEP),
        call,
      );
      cursor = String(next);
      yield found.filter((_, i) => i % 2 === 0);
    } while (cursor !== "0");
  }
}

/** Yields an entry that no group was given yet once; any other entry once for each group that has not finished it. */
function* contentsOf(
  { entry, claims }: StreamPage["entries"][number],
  groupCount: number,
): Generator<Content, void, void> {
  const { entryId, address, payload, trailer, attempts, heldBackUntil } = entry;
  const readyAt = Math.max(Number(entryId.split("-")[0]), heldBackUntil ?? 0);
  const message = { entryId, address, payload, trailer };
  const common = { ...message, readyAt };
  const isNew = claims.every(({ consumer }) => consumer === undefined);
  if (entry.group === undefined && isNew && claims.length === Math.max(1, groupCount)) {
    yield { ...common, state: "ready", attempts, group: undefined };
    return;
  }
  for (const { group, consumer, takenAt, deliveries } of claims) {
    if (consumer === undefined) yield { ...common, state: "ready", attempts, group };
    else {
      // An entry that a script keeps in flight has no delivery before it is handed out.
      const waits = deliveries === 0 && heldBackUntil !== undefined;
      const made = attempts + deliveries;
      const all = { ...(waits ? { ...message, heldBackUntil } : common), group, consumer };
      yield { ...all, state: "in flight", attempts: made, ...(deliveries > 0 && { takenAt }) };
    }
  }
}

/** The arguments that restrict a page to one message, and the limits of a page. */
function wantedOf(idOrKey: string): {
  readonly wanted: Buffer | "";
  readonly key: string;
  readonly limit: number;
  readonly maxBytes: number;
} {
  if (idOrKey === "") return { wanted: "", key: "", limit: STEP, maxBytes: PAGE_BYTES };
  const limits = { limit: SCAN_STEP, maxBytes: SCAN_BYTES };
  if (isMessageId(idOrKey)) return { wanted: parseMessageId(idOrKey), key: "", ...limits };
  return { wanted: "", key: idOrKey, ...limits };
}

/** The id of a stream's entry behind which a message may be; empty for the beginning. */
export function startOf(idOrKey: string): string {
  if (!isMessageId(idOrKey)) return "";
  const deadline = Number(idOrKey.slice(0, idOrKey.lastIndexOf("-")));
  const from = Math.floor(Math.min(deadline, Number.MAX_SAFE_INTEGER)) - CLOCK_STEPS;
  return from > 0 ? `${from}-0` : "";
}

/** When an entry of a stream was added (epoch ms); Infinity without an entry. */
function timeOf(entryId: string | undefined): number {
  return entryId === undefined ? Infinity : Number(entryId.split("-")[0]);
}

/** How far the clocks of servers may be set back, or differ, without hiding a message from a reader (ms). */
const CLOCK_STEPS = 3_600_000;

/** Messages that one script reads, and bytes after which it stops: about 200 us of Redis's time. */
const STEP = 12;
const PAGE_BYTES = 32_768;

/** The same for a script that looks at messages without returning them all. */
const SCAN_STEP = 25;
const SCAN_BYTES = 131_072;
