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
import type { Call } from "../queue/call.ts";
import { isMessageId, parseMessageId } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";

/** A message of a reliable queue that is not delayed, as bytes. A message in several groups is listed once for each. */
export interface Content {
  readonly state: "retrying" | "ready" | "in flight" | "dead";
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

/**
 * Reads the messages of a reliable queue that are not delayed: retrying, ready, in flight and dead ones. Moves and
 * takes nothing.
 *
 * It reads in pages of 20 messages and 32 kB, or 128 kB where a script only looks at payloads: O(N) in all. `idOrKey`
 * restricts it to one message. It is not a snapshot: a message that moves meanwhile may be read twice, or not at all.
 */
export class Contents {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** The retrying messages. O(log N) with an id. */
  async *retries(idOrKey = "", call?: Call): AsyncGenerator<Content, void, void> {
    if (isMessageId(idOrKey)) {
      const address = parseMessageId(idOrKey);
      const found = await this.#queue.read("look into", getRetries, { wanted: address }, call);
      for (const retry of found) yield { ...retry, address, state: "retrying" };
      return;
    }
    const args = { key: idOrKey, maxBytes: idOrKey === "" ? PAGE_BYTES : SCAN_BYTES };
    for await (const names of this.#retryNames(call)) {
      for (let i = 0; i < names.length;) {
        const rows = names.slice(i, i + STEP).map((name) => ({ name }));
        const page = await this.#queue.read("look into", retryPage, args, { ...call, rows });
        for (const retry of page.retries) yield { ...retry, state: "retrying" };
        i += page.lookedUp;
      }
    }
  }

  /** The messages in the stream, oldest first: ready for all groups or for one, or in flight. */
  async *stream(idOrKey = "", call?: Call): AsyncGenerator<Content, void, void> {
    const args = { ...wantedOf(idOrKey), limit: STEP };
    let after: string | undefined = "";
    while (after !== undefined) {
      const all = { ...args, after };
      const page: StreamPage = await this.#queue.read("look into", streamPage, all, call);
      for (const claimed of page.entries) yield* contentsOf(claimed, page.groupCount);
      after = page.next;
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
          // Nobody has acknowledged an entry for another group yet.
          if (entry.group === undefined || entry.group === group)
            yield* contentsOf({ entry, claims }, 1);
        }
        after = page.next;
      }
    }
  }

  /** The dead letters, oldest first, including unreadable ones. */
  async *letters(idOrKey = "", call?: Call): AsyncGenerator<Content, void, void> {
    const { wanted, key, maxBytes } = wantedOf(idOrKey);
    let cursor: LetterCursor | undefined = FIRST_LETTERS;
    while (cursor !== undefined) {
      const args = { ...cursor, limit: STEP, maxBytes };
      const doing = "read the dead letters of";
      const page: DeadPage =
        idOrKey === ""
          ? await this.#queue.read(doing, deadPage, args, call)
          : await this.#queue.read(doing, findDead, { ...args, wanted, key }, call);
      for (const letter of page.letters) yield { ...letter, state: "dead" };
      cursor = page.next;
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

  /** The names of all retries, about 20 at a time. A retry that stays is among them at least once. */
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

/** The arguments that restrict a page to one message. */
function wantedOf(idOrKey: string): {
  readonly wanted: Buffer | "";
  readonly key: string;
  readonly maxBytes: number;
} {
  const maxBytes = idOrKey === "" ? PAGE_BYTES : SCAN_BYTES;
  if (isMessageId(idOrKey)) return { wanted: parseMessageId(idOrKey), key: "", maxBytes };
  return { wanted: "", key: idOrKey, maxBytes };
}

/** Messages that one script reads, and bytes after which it stops: about 300 us of Redis's time. */
const STEP = 20;
const PAGE_BYTES = 32_768;

/** The bytes after which a script stops if it looks at messages without returning them all. */
const SCAN_BYTES = 131_072;
