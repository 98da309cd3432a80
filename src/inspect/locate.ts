import { Lookup } from "../delayed/lookup.ts";
import { callSignal, checkIdOrKey } from "../queue/checks.ts";
import { isMessageId } from "../queue/message/message.ts";
import type { CallOptions } from "../queue/options.ts";
import { placesOf } from "../queue/queue-handle.ts";
import { Contents, type Content } from "../reliable/contents.ts";
import type { InspectedQueue } from "./inspector.ts";
import { sight, sightDelayed, type Sighting } from "./sighting.ts";

/** Where a message is. */
export interface Location {
  /** Each place in which it was seen: one for each group of a reliable queue, at most. Empty: it was not found. */
  readonly sightings: readonly Sighting[];
  /**
   * Whether it may be ready though it was not seen: the ready LIST of a plain queue has something in it, and holds bare
   * payloads, without ids and keys.
   */
  readonly mayBeReady: boolean;
}

/**
 * Looks for a message by its id or its business key: among the delayed ones, the retries, what is ready and in flight,
 * and the dead letters. Several messages may have had the key, one after another; each is told.
 *
 * A delayed message is found in O(log N), a retry by its id, too. Otherwise all of a reliable queue is read: O(N), in
 * scripts of at most 20 entries, some 300 us of Redis's time each. A message that moves on meanwhile may be missed: where
 * consumers are at work, not found is no proof.
 *
 * @throws {TypeError | RangeError} if `idOrKey` is neither an id nor a legal key.
 * @throws {RedisError} if Redis cannot be asked.
 */
export async function locate(
  queue: InspectedQueue,
  idOrKey: string,
  options?: CallOptions,
): Promise<Location> {
  checkIdOrKey(idOrKey);
  const signal = callSignal(options);
  const isReliable = queue.deadLetters !== undefined;
  const places = await placesOf(queue.messages).all(signal);
  const all = places.map(({ partition, queue: at }) => ({
    spot: { queue: queue.name, partition },
    lookup: new Lookup(at),
    contents: new Contents(at),
  }));
  const seek = async (read: (one: (typeof all)[number]) => Promise<Sighting[]>) =>
    (await Promise.all(all.map(read))).flat();
  const among = (read: (contents: Contents) => AsyncIterable<Content>) =>
    seek(async ({ spot, contents }) => {
      const found: Sighting[] = [];
      for await (const content of read(contents)) found.push(sight(spot, content));
      return found;
    });

  const delayed = await seek(async ({ spot, lookup }) => {
    const member = await lookup.get(idOrKey, signal);
    const found = member && sightDelayed(spot, member);
    return found ? [found] : [];
  });
  // An id is that of one message, and one that is delayed is nowhere else.
  if (delayed.length > 0 && (isMessageId(idOrKey) || !isReliable)) {
    return { sightings: delayed, mayBeReady: false };
  }
  if (!isReliable) return { sightings: [], mayBeReady: queue.stats.ready > 0 };

  // In the order in which a message passes through them.
  const sightings = [
    ...delayed,
    ...(await among((contents) => contents.retries(idOrKey, signal))),
    ...(await among((contents) => contents.stream(idOrKey, signal))),
    ...(await among((contents) => contents.letters(idOrKey, signal))),
  ];
  if (sightings.length > 0) return { sightings, mayBeReady: false };
  // It may have gone back to the retries after these were read.
  const again = await among((contents) => contents.retries(idOrKey, signal));
  return { sightings: again, mayBeReady: false };
}
