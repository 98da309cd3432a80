import type { CallOptions } from "../../index.ts";
import {
  checks,
  consumerNames,
  ids,
  trailers,
  type Content,
  type InsidePart,
} from "../../inside.ts";
import type { InspectedQueue } from "./inspector.ts";
import { sight, sightDelayed, sightMessage, type MessageState, type Sighting } from "./sighting.ts";

/** Where a message was found. */
export interface Location {
  /** Every place in which it was seen: at most one per group of a reliable queue. Empty if it was not found. */
  readonly sightings: readonly Sighting[];
  /**
   * Whether it may be ready although it was not found: the ready LIST of a plain queue is not empty, and its payloads
   * have neither ids nor keys.
   */
  readonly mayBeReady: boolean;
}

/**
 * Finds a message by its id or business key, in every state: delayed, retrying, ready, in flight or dead. Several
 * messages may have had the key, one after another; all are returned.
 *
 * O(log N) in a plain queue, and for a delayed message by its id. Otherwise reads all of a reliable queue: O(N), in
 * scripts of at most 25 entries that take Redis some 200 us each. It can miss a message that moves on at that moment,
 * so while consumers work, an empty result proves nothing.
 *
 * @throws {TypeError | RangeError} if `idOrKey` is neither an id nor a valid key.
 * @throws {RedisError} if Redis refuses or does not reply.
 */
export async function locate(
  queue: InspectedQueue,
  idOrKey: string,
  call?: CallOptions,
): Promise<Location> {
  checks.checkIdOrKey(idOrKey);
  const isReliable = queue.deadLetters !== undefined;
  const parts = await queue.inside.parts(call);
  const all = parts.map(({ label, contents }) => ({
    origin: { queue: queue.name, partition: label },
    contents,
  }));
  const seek = async (read: (one: (typeof all)[number]) => Promise<Sighting[]>) =>
    (await Promise.all(all.map(read))).flat();
  const among = (read: (contents: InsidePart["contents"]) => AsyncIterable<Content>) =>
    seek(async ({ origin, contents }) => {
      const found: Sighting[] = [];
      for await (const content of read(contents)) found.push(sight(origin, content));
      return found;
    });

  const delayed = await delayedIn(queue, idOrKey, call);
  // An id belongs to one message, and a delayed message is nowhere else.
  if (delayed.length > 0 && (ids.isMessageId(idOrKey) || !isReliable)) {
    return { sightings: delayed, mayBeReady: false };
  }
  if (!isReliable) return { sightings: [], mayBeReady: queue.stats.ready > 0 };

  // In the order in which a message passes through them.
  const sightings = [
    ...delayed,
    ...(await among((contents) => contents.retries(idOrKey, call))),
    ...(await among((contents) => contents.stream(idOrKey, call))),
    ...(await among((contents) => contents.letters(idOrKey, call))),
  ];
  if (sightings.length > 0) return { sightings, mayBeReady: false };
  // The message may have moved back to the retries after they were read.
  const again = await among((contents) => contents.retries(idOrKey, call));
  return { sightings: again, mayBeReady: false };
}

/**
 * The delayed messages of a queue with this id or key. Leaves out a retrying message, which may have several groups: it is
 * found among the retries.
 */
export async function delayedIn(
  { name, inside }: InspectedQueue,
  idOrKey: string,
  call: CallOptions | undefined,
): Promise<Sighting[]> {
  const parts = await inside.parts(call);
  const found = parts.map(async ({ label, lookup }) => {
    const member = await lookup.get(idOrKey, call);
    if (member === undefined || member.place === "retrying") return [];
    return sightDelayed({ queue: name, partition: label }, member) ?? [];
  });
  return (await Promise.all(found)).flat();
}

/**
 * Lists the messages of a queue in one state: delayed ones by deadline, others partition by partition in the order in
 * which Redis stores them. Leaves out the ready messages of a plain queue, which have no ids. Reads in bounded pages,
 * so it is not a snapshot.
 *
 * @throws {RedisError} if Redis refuses or does not reply.
 */
export async function* messagesIn(
  { name, inside, messages, deadLetters }: InspectedQueue,
  state: MessageState,
  call?: CallOptions,
): AsyncGenerator<Sighting, void, void> {
  if (state === "delayed") {
    for await (const { payload, payloads = [], ...message } of messages.soonest(undefined, call)) {
      const { key = "", headers = {}, onlyIf, deliverWithin, lane, priority } = message;
      const trailer = trailers.packTrailer({
        key,
        headers,
        onlyIf,
        deliverWithin,
        lane,
        priority,
        collected: payloads.slice(0, -1).map((bytes) => Buffer.from(bytes)),
      });
      const origin = { queue: name, partition: undefined };
      yield sightMessage(origin, { ...message, payload: Buffer.from(payload), trailer });
    }
    return;
  }
  if (deadLetters === undefined) return;
  for (const { label: partition, contents } of await inside.parts(call)) {
    const found: AsyncIterable<Content> =
      state === "retrying"
        ? contents.retries("", call)
        : state === "dead"
          ? contents.letters("", call)
          : state === "in flight"
            ? contents.inFlight(call)
            : contents.stream("", call);
    for await (const content of found) {
      if (content.state === state) yield sight({ queue: name, partition }, content);
    }
  }
}

/**
 * Finds the messages whose business keys begin with a prefix, in every state: in no particular order, but delayed ones
 * first. Leaves out the ready messages of a plain queue, which have no keys. Yields undefined after each step, whether it
 * found something or not.
 *
 * Reads every key of the queue, and all messages of a reliable queue, in bounded pages. So it is not a snapshot: a message that
 * moves during the search may be found twice, or not at all.
 *
 * @throws {RedisError} if Redis refuses or does not reply.
 */
export async function* messagesWith(
  prefix: string,
  { name, inside, deadLetters }: InspectedQueue,
  call?: CallOptions,
): AsyncGenerator<Sighting | undefined, void, void> {
  const parts = await inside.parts(call);
  const seen = new Set<string>();
  for (const { label: partition, lookup } of parts) {
    for await (const keys of lookup.keysWith(prefix, call)) {
      for (let i = 0; i < keys.length; i += STEP) {
        const some = keys.slice(i, i + STEP);
        const found = await Promise.all(some.map((key) => lookup.get(key, call)));
        for (const member of found) {
          // A retrying message holds its key, and is found below, once for each of its groups.
          if (member === undefined || member.place === "retrying") continue;
          const sighting = sightDelayed({ queue: name, partition }, member);
          if (sighting === undefined || seen.has(sighting.id)) continue;
          seen.add(sighting.id);
          yield sighting;
        }
      }
      yield undefined;
    }
  }
  if (deadLetters === undefined) return;
  for (const { label: partition, contents } of parts) {
    for (const read of [
      contents.retries("", call),
      contents.stream("", call),
      contents.letters("", call),
    ]) {
      for await (const content of read) {
        const { key = "" } = trailers.unpackTrailer(content.trailer);
        yield key.startsWith(prefix) ? sight({ queue: name, partition }, content) : undefined;
      }
    }
  }
}

/** How many messages to look up at once. */
const STEP = 20;

/**
 * A consumer in a group of a reliable queue. A process has a consumer of another name in each partition: these are one
 * here, `host/pid`.
 */
interface SeenConsumer {
  readonly group: string;
  readonly name: string;
  /** The number of its only partition; undefined in an ordinary queue, and for a process with several. */
  readonly partition: number | undefined;
  /** Milliseconds since Redis last heard from it. */
  readonly idle: number;
  /** How many messages it holds. */
  readonly inFlight: number;
}

/** How many consumer groups a queue has in any of its parts; a plain one has none. Runs one script per partition. */
export async function countGroups(
  { inside, deadLetters }: InspectedQueue,
  call?: CallOptions,
): Promise<number> {
  if (deadLetters === undefined) return 0;
  const parts = await inside.parts(call);
  const groups = await Promise.all(parts.map(({ contents }) => contents.groups(call)));
  return new Set(groups.flat()).size;
}

/**
 * Lists the consumers of all groups of a reliable queue, including dead ones until they are removed. Empty for a plain
 * queue. O(number of consumers); runs one script per group and partition.
 *
 * @throws {RedisError} if Redis refuses or does not reply.
 */
export async function consumers(
  { inside, deadLetters }: InspectedQueue,
  call?: CallOptions,
): Promise<SeenConsumer[]> {
  if (deadLetters === undefined) return [];
  const found = new Map<string, SeenConsumer>();
  for (const { label: partition, contents } of await inside.parts(call)) {
    for (const group of await contents.groups(call)) {
      for (const { name: own, idle, inFlight } of await contents.consumers(group, call)) {
        const process = partition === undefined ? undefined : consumerNames.processOf(own);
        const name = process === undefined ? own : `${process.host}/${process.pid}`;
        const id = JSON.stringify([group, name]);
        const known = found.get(id);
        found.set(id, {
          group,
          name,
          partition: known === undefined ? partition : undefined,
          idle: Math.min(idle, known?.idle ?? Infinity),
          inFlight: inFlight + (known?.inFlight ?? 0),
        });
      }
    }
  }
  return [...found.values()];
}
