import {
  LIMITS,
  consumerNames,
  facts,
  ids,
  layout,
  replyOf,
  type RedisClient,
} from "../../../inside.ts";
import type { Site } from "./site.ts";

/** The contents of an ordinary queue, or of one partition. */
export interface PartReport {
  /** The number of the partition; -1 for the ordinary queue. */
  readonly partition: number;
  readonly name: string;
  readonly keys: layout.QueueKeys;
  readonly site: Site;
  readonly wrongTypes: readonly WrongType[];
  /** Whether the user may not ask for the types of keys. */
  readonly hidesTypes: boolean;
  /** How many delayed messages there are, also those that wait for their turn. */
  readonly delayed: number;
  /** How many elements the LIST of ready messages has. */
  readonly inList: number;
  /** The LIST of ready messages of the queue whose name differs in braces alone, if it has elements. */
  readonly otherList: { readonly key: string; readonly length: number } | undefined;
  /** How many entries the stream has: ready messages and those in flight. */
  readonly inStream: number;
  readonly retries: number;
  /** How many elements the two LISTs of the insertion order have together. */
  readonly orderLength: number;
  /** How many entries the index of business keys has. */
  readonly indexLength: number;
  /** How many quarantined payloads there are, which can be requeued. */
  readonly quarantined: number;
  /** How many quarantined members of unknown layout there are, which cannot be requeued. */
  readonly unreadable: number;
  /** How many dead letters there are, and when the first and the last died (epoch ms); undefined if there are none. */
  readonly dead:
    { readonly count: number; readonly firstAt: number; readonly lastAt: number } | undefined;
  /**
   * When the first of the messages was handled that Redis remembers (epoch ms), if it remembers as many as it may; else
   * undefined.
   */
  readonly remembersOnlySince: number | undefined;
  readonly groups: readonly GroupReport[];
  /**
   * Whether messages were dropped because of a condition, or one of the next to be due has any, or one of some that wait for
   * their turn.
   */
  readonly hasConditions: boolean;
  /** Whether the task that moved last asks no conditions: it is of an older release. */
  readonly isMovedUnasked: boolean;
  /** Whether the queue has a flow. */
  readonly hasFlow: boolean;
  /** Whether the task that moved last keeps no flow: it is of an older release. */
  readonly isMovedUnpaced: boolean;
  /** The number of the last batch that left for other partitions; empty if none has. */
  readonly lastBatch: string;
  /** Whether a batch has left, and has not arrived yet. */
  readonly hasOpenBatch: boolean;
}

/** A key that holds a value of the wrong type. */
export interface WrongType {
  readonly key: string;
  readonly found: string;
  readonly expected: string;
}

/** A consumer group. */
export interface GroupReport {
  readonly name: string;
  readonly inFlight: number;
  /** Whether the stream has entries that were not delivered to the group. */
  readonly hasUnread: boolean;
  readonly consumers: readonly ConsumerReport[];
  /** Those of the first thousand entries in flight that were handed out, in the order of the stream. */
  readonly oldest: readonly InFlightReport[];
  /**
   * Milliseconds since one of those was handed out that are in flight; undefined if none is, or there are more than
   * `oldest` shows.
   */
  readonly takenAgo: number | undefined;
}

/** An entry in flight. */
export interface InFlightReport {
  readonly consumer: string;
  /** Milliseconds since the consumer got it. */
  readonly age: number;
}

/** A consumer of a group. */
export interface ConsumerReport {
  readonly name: string;
  readonly inFlight: number;
  /** Milliseconds since Redis last heard from it. */
  readonly idle: number;
  /** Milliseconds of silence after which it is dead; undefined if it is not a consumer of this library. */
  readonly leaseTimeout: number | undefined;
  /** Its process, in words; undefined if the name does not tell. */
  readonly process: string | undefined;
}

/** Reads the part. The cost does not grow with the number of messages. */
export async function readPart(
  site: Site,
  partition: number,
  name: string,
  keys: layout.QueueKeys,
): Promise<PartReport> {
  const types = await findWrongTypes(site, keys);
  const wrongTypes = types ?? [];
  const isWrong = (key: string) => wrongTypes.some((wrong) => wrong.key === key);
  const count = async (key: string, ask: (redis: RedisClient) => Promise<unknown>) =>
    isWrong(key) ? 0 : Number(await site.ask(ask));
  const { timeouts, order, compacted, businessKeys, ready, stream, retries } = keys;
  const length = (key: string) => count(key, (redis) => redis.llen(key));
  const [
    delayed,
    waiting,
    inList,
    inStream,
    retrying,
    ordered,
    compact,
    indexLength,
    quarantined,
    unreadable,
  ] = await Promise.all([
    count(timeouts, (redis) => redis.zcard(timeouts)),
    count(keys.room, (redis) => redis.hlen(keys.room)),
    length(ready),
    count(stream, (redis) => redis.xlen(stream)),
    count(retries, (redis) => redis.zcard(retries)),
    length(order),
    length(compacted),
    count(businessKeys, (redis) => redis.hlen(businessKeys)),
    length(keys.quarantine),
    length(keys.unreadable),
  ]);
  const mover = isWrong(keys.mover) ? null : await site.ask((redis) => redis.get(keys.mover));
  const [last, rows] = isWrong(keys.journal)
    ? []
    : await site.ask((redis) => redis.hmget(keys.journal, "last", "rows"));
  return {
    partition,
    name,
    keys,
    site,
    wrongTypes,
    hidesTypes: types === undefined,
    delayed: delayed + waiting,
    inList,
    otherList:
      partition === facts.ORDINARY
        ? await readOtherList(site, layout.otherNameOf(name))
        : undefined,
    inStream,
    retries: retrying,
    orderLength: ordered + compact,
    indexLength,
    quarantined,
    unreadable,
    dead: isWrong(keys.dead) ? undefined : await readDead(site, keys.dead),
    remembersOnlySince: isWrong(keys.handled) ? undefined : await readFull(site, keys.handled),
    groups: isWrong(stream) ? [] : await readGroups(site, stream),
    hasConditions: !isWrong(timeouts) && !isWrong(keys.room) && (await hasConditions(site, keys)),
    isMovedUnasked: mover !== null && !mover.startsWith(LIMITS.asks),
    hasFlow: (await site.ask((redis) => redis.exists(keys.flow))) > 0,
    isMovedUnpaced: mover !== null && !mover.startsWith(LIMITS.paces),
    lastBatch: last ?? "",
    hasOpenBatch: rows !== undefined && rows !== null,
  };
}

async function hasConditions(
  site: Site,
  { dropped, timeouts, room }: layout.QueueKeys,
): Promise<boolean> {
  if (await site.ask((redis) => redis.exists(dropped))) return true;
  const next = await site.ask((redis) => redis.zrangeBuffer(timeouts, "0", String(NEXT - 1)));
  const [, waiting] = await site.ask((redis) => redis.hscanBuffer(room, "0", "COUNT", NEXT));
  // Each is an id, and the deadline in front of a member.
  const members = waiting.filter((_, i) => i % 2 === 1).map((value) => value.subarray(8));
  return [...next, ...members].some((member) => {
    const { onlyIf, deliverWithin } = ids.unpackMember(member) ?? {};
    return onlyIf !== undefined || deliverWithin !== undefined;
  });
}

/** Messages whose conditions are looked at. */
const NEXT = 20;

/** Undefined if the user may not run TYPE. */
async function findWrongTypes(
  site: Site,
  keys: layout.QueueKeys,
): Promise<WrongType[] | undefined> {
  try {
    const found = await Promise.all(
      Object.entries(layout.KEYS).map(async ([name, { type: expected }]) => {
        const key = keys[name as keyof layout.QueueKeys];
        const isKey = expected !== "channel";
        const type = isKey ? await site.ask((redis) => redis.type(key)) : "none";
        return { key, expected, found: type };
      }),
    );
    return found.filter((one) => one.found !== "none" && one.found !== one.expected);
  } catch (error) {
    if (replyOf(error) === "NOPERM") return undefined;
    throw error;
  }
}

async function readOtherList(
  site: Site,
  key: string | undefined,
): Promise<PartReport["otherList"]> {
  if (key === undefined) return undefined;
  try {
    const length = await site.ask((redis) => redis.llen(key));
    return length === 0 ? undefined : { key, length };
  } catch (error) {
    // The access rules of one name do not cover the other, and another program may have a key of that name.
    if (["NOPERM", "WRONGTYPE"].includes(replyOf(error) ?? "")) return undefined;
    throw error;
  }
}

async function readDead(site: Site, key: string): Promise<PartReport["dead"]> {
  const count = await site.ask((redis) => redis.xlen(key));
  if (count === 0) return undefined;
  const [first, last] = await Promise.all([
    site.ask((redis) => redis.xrange(key, "-", "+", "COUNT", 1)),
    site.ask((redis) => redis.xrevrange(key, "+", "-", "COUNT", 1)),
  ]);
  return { count, firstAt: timeOf(first[0]), lastAt: timeOf(last[0]) };
}

async function readFull(site: Site, handled: string): Promise<number | undefined> {
  const count = await site.ask((redis) => redis.xlen(handled));
  if (count < LIMITS.handled) return undefined;
  const [first] = await site.ask((redis) => redis.xrange(handled, "-", "+", "COUNT", 1));
  return timeOf(first);
}

/** When an entry was added (epoch ms), taken from its id. */
function timeOf([id]: readonly [string, unknown] = ["", []]): number {
  return Number(id.split("-")[0]);
}

async function readGroups(site: Site, stream: string): Promise<GroupReport[]> {
  const groups = await askInfo(site, "GROUPS", stream);
  if (groups.length === 0) return [];
  const [newest] = await site.ask((redis) => redis.xrevrange(stream, "+", "-", "COUNT", 1));
  return await Promise.all(
    groups.map(async (group) => {
      const name = String(group.get("name"));
      const consumers = await askInfo(site, "CONSUMERS", stream, name);
      const inFlight = Number(group.get("pending"));
      const oldest = inFlight > 0 ? await readOldest(site, stream, name) : [];
      const isAll = oldest.length > 0 && inFlight < MOST;
      return {
        name,
        inFlight,
        oldest,
        takenAgo: isAll ? Math.min(...oldest.map(({ age }) => age)) : undefined,
        hasUnread:
          newest !== undefined && isBehind(String(group.get("last-delivered-id")), newest[0]),
        consumers: consumers.map((consumer) => ({
          name: String(consumer.get("name")),
          inFlight: Number(consumer.get("pending")),
          idle: Number(consumer.get("idle")),
          leaseTimeout: consumerNames.leaseTimeoutOf(String(consumer.get("name"))),
          process: inWords(consumerNames.processOf(String(consumer.get("name")))),
        })),
      };
    }),
  );
}

function inWords(process: ReturnType<typeof consumerNames.processOf>): string | undefined {
  return process && `process ${process.pid} on ${process.host}`;
}

async function readOldest(site: Site, stream: string, group: string): Promise<InFlightReport[]> {
  try {
    const rows = await site.ask((redis) => redis.xpending(stream, group, "-", "+", MOST));
    return (rows as [string, string, number, number][])
      .filter(([, , , deliveries]) => deliveries > 0)
      .map(([, consumer, age]) => ({ consumer, age }));
  } catch (error) {
    if (replyOf(error) === "NOGROUP") return [];
    throw error;
  }
}

/** More than an exclusive consumer has aside, which it has not handed out. */
const MOST = 1000;

/** Whether a stream id (`<ms>-<number>`) precedes another. */
function isBehind(id: string, other: string): boolean {
  const [[ms = 0n, number = 0n], [otherMs = 0n, otherNumber = 0n]] = [id, other].map((one) =>
    one.split("-").map(BigInt),
  ) as [bigint[], bigint[]];
  return ms < otherMs || (ms === otherMs && number < otherNumber);
}

/** The reply to XINFO; empty if the stream or the group is gone. */
async function askInfo(
  site: Site,
  ...words: ["GROUPS", string] | ["CONSUMERS", string, string]
): Promise<Map<string, unknown>[]> {
  const ask = (redis: RedisClient) =>
    words[0] === "GROUPS" ? redis.xinfo(words[0], words[1]) : redis.xinfo(...words);
  try {
    return ((await site.ask(ask)) as unknown[][]).map(asMap);
  } catch (error) {
    if (/no such key|NOGROUP/.test((error as Error).message)) return [];
    throw error;
  }
}

function asMap(fields: readonly unknown[]): Map<string, unknown> {
  const map = new Map<string, unknown>();
  for (let i = 0; i < fields.length; i += 2) map.set(String(fields[i]), fields[i + 1]);
  return map;
}
