import type { CallOptions } from "../../index.ts";
import { checks, ids, type InsidePart } from "../../inside.ts";
import { handledIn, type HandledSighting } from "./handled.ts";
import type { InspectedQueue, Inspector } from "./inspector.ts";
import { delayedIn } from "./locate.ts";
import { sight, type Sighting } from "./sighting.ts";

/** What a search has left out. It is complete if nothing is listed here. */
export interface LeftOut {
  /** Places that were not read to their end. */
  readonly unread: readonly Unread[];
  /** Plain queues with ready messages, which have neither ids nor keys. */
  readonly unsearchable: readonly string[];
  /** Queues that could not be read, and why. */
  readonly failed: readonly { readonly queue: string; readonly error: Error }[];
}

/** A place that was not read to its end. */
export interface Unread {
  readonly queue: string;
  readonly partition: number | undefined;
  readonly place: "retries" | "stream" | "dead letters";
  /** From when on messages were not looked at, by when they became ready or died (epoch ms). */
  readonly from: number | undefined;
}

/** What a search has looked through. */
export interface SearchReport extends LeftOut {
  /** How many queues were asked. */
  readonly queues: number;
  /** If it is in no place: who has handled it, as far as queues remember that. */
  readonly handled: readonly HandledSighting[];
  /** If it is in no place: reliable queues that do not remember what was handled, so it may have been handled there. */
  readonly forgetful: readonly string[];
}

/** Options of {@link search}. */
export interface SearchOptions extends CallOptions {
  /** The queues to search. Defaults to all, which costs a scan of the names of all keys. */
  readonly names?: readonly string[] | undefined;
  /**
   * The most entries to look at in each place of a queue or partition. Defaults to 20,000: some 200 ms of Redis's time, in
   * steps of some 200 us.
   */
  readonly most?: number;
}

/**
 * Searches all queues for a message by its id or business key, in every state. Yields each place in which it is seen, and
 * undefined after each step without one; returns what was left out.
 *
 * First it looks it up among the delayed and retrying messages of all queues, O(log N) each. A delayed message is nowhere
 * else, so if the id of one is found, that is all. Then it reads the streams, retries and dead letters of reliable queues,
 * oldest first, up to `most` entries each: by an id only what became ready or died after the deadline that the id shows.
 * If it is nowhere, it asks those queues whether they remember that it was handled (see {@link handledIn} for the price).
 * It can miss a message that moves on at that moment.
 *
 * @throws {TypeError | RangeError} if `idOrKey` is neither an id nor a valid key.
 * @throws {RedisError} if the queues cannot be listed. A queue that cannot be read is reported.
 */
export async function* search(
  inspector: Inspector,
  idOrKey: string,
  { names, most = 20_000, ...call }: SearchOptions = {},
): AsyncGenerator<Sighting | undefined, SearchReport, void> {
  checks.checkIdOrKey(idOrKey);
  const unread: Unread[] = [];
  const unsearchable: string[] = [];
  const failed: { queue: string; error: Error }[] = [];
  const handled: HandledSighting[] = [];
  const forgetful: string[] = [];
  const reliable: InspectedQueue[] = [];
  const all = names ?? (await inspector.names(call.signal));
  const queues = all.length;
  const report = () => ({ queues, unread, unsearchable, failed, handled, forgetful });

  const fail = (queue: string, error: unknown) => {
    call.signal?.throwIfAborted();
    failed.push({ queue, error: error instanceof Error ? error : new Error(String(error)) });
  };
  let isFound = false;
  for (let i = 0; i < all.length; i += CONCURRENCY) {
    const some = all.slice(i, i + CONCURRENCY);
    const found = await Promise.all(
      some.map(async (name) => {
        try {
          const queue = await inspector.open(name, call.signal);
          if (queue.deadLetters !== undefined) reliable.push(queue);
          else if (queue.stats.ready > 0) unsearchable.push(name);
          return await delayedIn(queue, idOrKey, call);
        } catch (error) {
          fail(name, error);
          return [];
        }
      }),
    );
    for (const sighting of found.flat()) {
      isFound = true;
      yield sighting;
    }
    yield undefined;
  }
  if (isFound && ids.isMessageId(idOrKey)) return { ...report(), unsearchable: [] };
  for (const queue of reliable) {
    try {
      for await (const found of contentsIn(queue, idOrKey, { ...call, most, unread })) {
        isFound ||= found !== undefined;
        yield found;
      }
    } catch (error) {
      fail(queue.name, error);
    }
  }
  if (isFound) return report();
  for (const queue of reliable) {
    try {
      const { found, since } = await handledIn(queue, idOrKey, call);
      handled.push(...found);
      if (since === undefined) forgetful.push(queue.name);
    } catch (error) {
      fail(queue.name, error);
    }
    yield undefined;
  }
  return report();
}

/** Reads a reliable queue in the order in which a message passes through it; undefined after each step. */
async function* contentsIn(
  { name, inside, stats }: InspectedQueue,
  idOrKey: string,
  { most, unread, ...call }: CallOptions & { readonly most: number; readonly unread: Unread[] },
): AsyncGenerator<Sighting | undefined, void, void> {
  type Read = (contents: InsidePart["contents"]) => ReturnType<typeof contents.streamPages>;
  const places: readonly (readonly [Unread["place"], count: number, step: number, Read])[] = [
    ["retries", stats.retries, 20, (one) => one.retryPages(idOrKey, call)],
    ["stream", stats.ready + stats.inFlight, 100, (one) => one.streamPages(idOrKey, call)],
    ["dead letters", stats.dead, 50, (one) => one.letterPages(idOrKey, call)],
  ];
  for (const { label: partition, contents } of await inside.parts(call)) {
    for (const [place, count, step, read] of places) {
      if (count === 0) continue;
      let looked = 0;
      for await (const page of read(contents)) {
        for (const content of page.contents) yield sight({ queue: name, partition }, content);
        yield undefined;
        looked += step;
        if (looked >= most && page.readTo !== Infinity) {
          unread.push({ queue: name, partition, place, from: page.readTo });
          break;
        }
      }
    }
  }
}

/** How many queues are opened at once. */
const CONCURRENCY = 8;
