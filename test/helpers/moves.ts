import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { queueKeys, type QueueKeys } from "../../src/queue/keys.ts";
import { packAddress, packMember } from "../../src/queue/message/message.ts";
import { eventually } from "./eventually.ts";
import { newRedis, uniqueName } from "./redis.ts";

// For tests of single scripts: write exact bytes into the keys, run ONE script, read all keys back.

/** Bytes as text, one character each (latin1), so that differences are readable. */
export type Bytes = string;

/** The contents of all keys of a queue. Empty keys are left out. */
export interface QueueState {
  /** Members with their scores, in the order of the ZSET. */
  readonly timeouts?: readonly (readonly [member: Bytes, score: number])[];
  readonly order?: readonly Bytes[];
  readonly compacted?: readonly Bytes[];
  readonly ready?: readonly Bytes[];
  readonly quarantine?: readonly Bytes[];
  readonly businessKeys?: Readonly<Record<string, Bytes>>;
  readonly unreadable?: readonly Bytes[];
  /** How many messages were dropped, by the condition; and the last of them. */
  readonly dropped?: Readonly<Record<string, string>>;
  /** The flow of the queue. */
  readonly flow?: Readonly<Record<string, string>>;
  /** The waiting room: what is kept by id; turns, lanes and rests with their scores, in the order of the ZSETs. */
  readonly room?: Readonly<Record<Bytes, Bytes>>;
  readonly turns?: readonly (readonly [turn: Bytes, score: number])[];
  readonly lanes?: readonly (readonly [lane: string, score: number])[];
  readonly resting?: readonly (readonly [lane: string, score: number])[];
  readonly lanePaces?: readonly (readonly [lane: string, score: number])[];
  /** Records of schedules, and the revisions of sets. */
  readonly schedules?: Readonly<Record<string, Bytes>>;
  /** Names of schedules with their scores, in the order of the ZSET. */
  readonly planning?: readonly (readonly [name: string, score: number])[];
  /** The newest entry of each schedule that must not overlap. */
  readonly running?: Readonly<Record<string, string>>;
  /** What is remembered of messages that were offered with `once`, and when to look whether it can be forgotten. */
  readonly once?: Readonly<Record<string, Bytes>>;
  readonly onceEnds?: readonly (readonly [key: string, score: number])[];
  /** Revoked messages whose handlers may still run. */
  readonly revoked?: Readonly<Record<string, string>>;
  /** The log, the newest entry first: without the times that a script has written. */
  readonly activity?: readonly string[];
  readonly mover?: string;
  readonly listed?: string;
  readonly paused?: string;
  /** Without their times, which are about now. */
  readonly receipts?: readonly string[];
  /** Entries by the names of their fields, oldest first. */
  readonly stream?: readonly Fields[];
  /** Consumer groups of the stream. */
  readonly groups?: readonly string[];
  /** Names with their scores, in the order of the ZSET. */
  readonly retries?: readonly (readonly [name: Bytes, score: number])[];
  readonly retrying?: Readonly<Record<Bytes, Bytes>>;
  /** Entries: the id, then the names and the values of the fields. */
  readonly dead?: readonly (readonly [entryId: string, ...fields: Bytes[]])[];
  readonly partitions?: string;
  readonly journal?: Readonly<Record<string, Bytes>>;
  readonly arrivals?: Readonly<Record<string, string>>;
  /** Who consumes the partition exclusively. */
  readonly holder?: Readonly<Record<string, string>>;
  /** Processes, without their times, which are about now. */
  readonly members?: readonly string[];
  /** Messages published since the seed. */
  readonly channel?: readonly string[];
}

/** The fields of an entry of a STREAM. */
export type Fields = Readonly<Record<string, Bytes>>;

/** A queue that belongs to one test. Its keys are written and read without the library's code. */
export interface Moves {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly seed: (state: QueueState) => Promise<void>;
  readonly snapshot: () => Promise<QueueState>;
}

/** Makes a queue for one test, on the shared Redis by default. */
export async function newMoves(url?: string): Promise<Moves> {
  const redis = newRedis(url);
  const keys = queueKeys(uniqueName("moves"));
  const heard: string[] = [];
  const marks = new Set<string>();
  const subscriber = newRedis(url);
  const marking = `${keys.channel}:marks`;
  await subscriber.subscribe(keys.channel, marking);
  subscriber.on("message", (channel, text) => {
    if (channel === marking) marks.add(text);
    else heard.push(text);
  });
  return {
    redis,
    keys,
    seed: (state) => seed(redis, keys, state),
    snapshot: async () => {
      // Messages arrive in the order of publishing, so behind the mark nothing is missing.
      const mark = randomUUID();
      await redis.publish(marking, mark);
      await eventually(() => marks.has(mark));
      return withoutEmpty({ ...(await read(redis, keys)), channel: heard });
    },
  };
}

async function seed(redis: Redis, keys: QueueKeys, state: QueueState): Promise<void> {
  const { timeouts = [], businessKeys = {}, mover, listed, paused, receipts = [] } = state;
  for (const [member, score] of timeouts) await redis.zadd(keys.timeouts, score, bytes(member));
  for (const list of LISTS) {
    for (const element of state[list] ?? []) await redis.rpush(keys[list], bytes(element));
  }
  for (const [key, entry] of Object.entries(businessKeys))
    await redis.hset(keys.businessKeys, key, bytes(entry));
  for (const fields of state.stream ?? [])
    await redis.xadd(keys.stream, "*", ...Object.entries(fields).flat().map(bytes));
  if (mover !== undefined) await redis.set(keys.mover, mover);
  if (listed !== undefined) await redis.set(keys.listed, listed);
  if (paused !== undefined) await redis.set(keys.paused, paused);
  // Older than receipts that a script writes now.
  const before = Date.now() - 60_000;
  for (const receipt of receipts) await redis.zadd(keys.receipts, before, receipt);
  await seedReliable(redis, keys, state);
  await seedPartition(redis, keys, state);
}

async function seedReliable(redis: Redis, keys: QueueKeys, state: QueueState): Promise<void> {
  const { groups = [], retries = [], retrying = {}, dead = [] } = state;
  for (const group of groups) await redis.xgroup("CREATE", keys.stream, group, "$", "MKSTREAM");
  for (const [name, score] of retries) await redis.zadd(keys.retries, score, bytes(name));
  for (const [name, value] of Object.entries(retrying))
    await redis.hset(keys.retrying, bytes(name), bytes(value));
  for (const [entryId, ...fields] of dead)
    await redis.xadd(keys.dead, entryId, ...fields.map(bytes));
}

async function seedPartition(redis: Redis, keys: QueueKeys, state: QueueState): Promise<void> {
  if (state.partitions !== undefined) await redis.set(keys.partitions, state.partitions);
  for (const [name, score] of state.planning ?? []) await redis.zadd(keys.planning, score, name);
  for (const zset of OF_ROOM) {
    for (const [name, score] of state[zset] ?? []) await redis.zadd(keys[zset], score, bytes(name));
  }
  for (const [id, kept] of Object.entries(state.room ?? {}))
    await redis.hset(keys.room, bytes(id), bytes(kept));
  for (const hash of HASHES) {
    for (const [name, value] of Object.entries(state[hash] ?? {}))
      await redis.hset(keys[hash], name, bytes(value));
  }
  for (const member of state.members ?? []) await redis.zadd(keys.members, Date.now(), member);
}

const LISTS = ["order", "compacted", "ready", "quarantine", "unreadable", "activity"] as const;

const HASHES = [
  "journal",
  "arrivals",
  "holder",
  "dropped",
  "schedules",
  "running",
  "once",
  "revoked",
  "flow",
] as const;

/** The ZSETs of the waiting room, and another one. */
const OF_ROOM = ["turns", "lanes", "resting", "lanePaces", "onceEnds"] as const;

async function read(redis: Redis, keys: QueueKeys): Promise<QueueState> {
  const list = async (key: string) => (await redis.lrangeBuffer(key, 0, -1)).map(asText);
  const entries = async (key: string) => {
    if ((await redis.type(key)) !== "stream") return [];
    const found = await redis.xrangeBuffer(key, "-", "+");
    return found.map(([, fields]) => pairs(fields));
  };
  const index = Object.entries(await redis.hgetallBuffer(keys.businessKeys));
  const mover = await redis.get(keys.mover);
  const listed = await redis.get(keys.listed);
  const paused = await redis.get(keys.paused);
  return {
    timeouts: await scored(redis, keys.timeouts),
    order: await list(keys.order),
    compacted: await list(keys.compacted),
    ready: await list(keys.ready),
    quarantine: await list(keys.quarantine),
    unreadable: await list(keys.unreadable),
    activity: (await list(keys.activity)).map((entry) => entry.replace(/^\d{16} /, "")),
    businessKeys: Object.fromEntries(index.map(([key, entry]) => [key, asText(entry)])),
    // The instant of the claim is another one each time.
    ...(mover !== null && { mover: mover.replace(/@\d+$/, "") }),
    ...(listed !== null && { listed }),
    ...(paused !== null && { paused }),
    receipts: await redis.zrange(keys.receipts, "0", "-1"),
    stream: await entries(keys.stream),
    ...(await readReliable(redis, keys)),
    ...(await readPartition(redis, keys)),
  };
}

async function readPartition(redis: Redis, keys: QueueKeys): Promise<QueueState> {
  const hash = async (key: string) => {
    const fields = Object.entries(await redis.hgetallBuffer(key));
    return Object.fromEntries(fields.map(([name, value]) => [name, asText(value)]));
  };
  const fact = await redis.get(keys.partitions);
  return {
    ...(fact !== null && { partitions: fact }),
    journal: await hash(keys.journal),
    arrivals: await hash(keys.arrivals),
    holder: await hash(keys.holder),
    dropped: await hash(keys.dropped),
    flow: await hash(keys.flow),
    ...(await readRoom(redis, keys)),
    schedules: await hash(keys.schedules),
    planning: await scored(redis, keys.planning),
    running: await hash(keys.running),
    once: await hash(keys.once),
    revoked: await hash(keys.revoked),
    members: await redis.zrange(keys.members, "0", "-1"),
  };
}

async function readRoom(redis: Redis, keys: QueueKeys): Promise<QueueState> {
  const is = async (key: string, type: string) => (await redis.type(key)) === type;
  const words = (await is(keys.room, "hash"))
    ? ((await redis.callBuffer("HGETALL", keys.room)) as Buffer[]).map(asText)
    : [];
  const zset = async (key: string) => ((await is(key, "zset")) ? await scored(redis, key) : []);
  return {
    room: Object.fromEntries(
      words.flatMap((id, i) => (i % 2 === 0 ? [[id, words[i + 1] ?? ""]] : [])),
    ),
    turns: await zset(keys.turns),
    lanes: await zset(keys.lanes),
    resting: await zset(keys.resting),
    lanePaces: await zset(keys.lanePaces),
    onceEnds: await zset(keys.onceEnds),
  };
}

function pairs(words: readonly Buffer[]): Fields {
  const texts = words.map(asText);
  return Object.fromEntries(
    texts.flatMap((text, i) => (i % 2 === 0 ? [[text, texts[i + 1] ?? ""]] : [])),
  );
}

async function readReliable(redis: Redis, keys: QueueKeys): Promise<QueueState> {
  const is = async (key: string, type: string) => (await redis.type(key)) === type;
  const groups = (await is(keys.stream, "stream")) ? await redis.xinfo("GROUPS", keys.stream) : [];
  const words = (await is(keys.retrying, "hash"))
    ? ((await redis.callBuffer("HGETALL", keys.retrying)) as Buffer[])
    : [];
  const retrying = words.map(asText);
  const dead = (await is(keys.dead, "stream")) ? await redis.xrangeBuffer(keys.dead, "-", "+") : [];
  return {
    groups: (groups as string[][]).map((group) => group[group.indexOf("name") + 1] ?? ""),
    retries: (await is(keys.retries, "zset")) ? await scored(redis, keys.retries) : [],
    retrying: Object.fromEntries(
      retrying.flatMap((name, i) => (i % 2 === 0 ? [[name, retrying[i + 1] ?? ""]] : [])),
    ),
    dead: dead.map(([entryId, fields]) => [asText(entryId), ...fields.map(asText)]),
  };
}

async function scored(redis: Redis, key: string): Promise<[member: Bytes, score: number][]> {
  const members = (await redis.zrangeBuffer(key, "0", "-1")).map(asText);
  const scores = members.map((member) => redis.zscore(key, bytes(member)));
  return (await Promise.all(scores)).map((score, i) => [members[i] ?? "", Number(score)]);
}

function withoutEmpty(state: QueueState): QueueState {
  return Object.fromEntries(Object.entries(state).filter(([, all]) => Object.keys(all).length > 0));
}

/** A message, in all the forms that it has in Redis. */
export interface Message {
  readonly payload: string;
  readonly deadline: number;
  readonly key: string;
  readonly id: Bytes;
  readonly member: Bytes;
  /** Its element in an order LIST of addresses. In a LIST of members the element is the member. */
  readonly address: Bytes;
  /** Its place in the timeouts ZSET. */
  readonly delayed: readonly [member: Bytes, score: number];
}

/** The order stamp in the id of each message: when it was offered, in microseconds. */
export const STAMP = 1_760_000_000_000_000;

/** A message whose payload is one letter. Its id follows from the payload, whatever its deadline. */
export function message(
  payload: string,
  deadline: number,
  key = "",
  more?: Parameters<typeof packMember>[3],
): Message {
  const id = Buffer.alloc(16, payload);
  id.writeBigUInt64BE(BigInt(STAMP));
  const member = asText(packMember(id, Buffer.from(payload), key, more));
  const address = asText(packAddress(deadline, id));
  return { payload, deadline, key, id: asText(id), member, address, delayed: [member, deadline] };
}

/** The two kinds of order LIST, and the element of a message in each. */
export const asAddress = ({ address }: Message): Bytes => address;
export const asMember = ({ member }: Message): Bytes => member;

/** An entry of the index of business keys: the address of the message, and the outcome of its offer. */
export function indexEntry({ address }: Message, outcome = 0, ...instants: number[]): Bytes {
  const packed = instants.map((instant) => {
    const eight = Buffer.alloc(8);
    eight.writeBigUInt64BE(BigInt(instant));
    return asText(eight);
  });
  return address + String.fromCodePoint(outcome) + packed.join("");
}

/**
 * What is remembered of a message that was offered with `once`: it was handled `at`, 0 if it was not, which counts for `keepFor`
 * milliseconds; and its entry for all groups, or for one.
 */
export function onceRecord(
  { address }: Pick<Message, "address">,
  { at = 0, keepFor = 0, entry = "", group }: OnceRecord = {},
): Bytes {
  const head = Buffer.alloc(16);
  head.writeBigUInt64LE(BigInt(at), 0);
  head.writeBigUInt64LE(BigInt(keepFor), 8);
  const name = group === undefined ? "*" : `g${group}`;
  return asText(head) + address + (entry === "" ? "" : `\x81${shortText(name)}${shortText(entry)}`);
}

/** A text of up to 31 bytes as MessagePack has it. */
function shortText(text: string): string {
  return String.fromCodePoint(0xa0 + text.length) + text;
}

interface OnceRecord {
  readonly at?: number;
  readonly keepFor?: number;
  readonly entry?: string;
  readonly group?: string;
}

/** The name of a message that waits for a retry; see the fragment `retry`. */
export function retryName({ address }: Pick<Message, "address">, group: string): Bytes {
  return String.fromCodePoint(address.length) + address + asText(Buffer.from(group));
}

/** The value of a message that waits for a retry after `attempts` deliveries. */
export function packRetry(
  { payload, key }: Pick<Message, "payload" | "key">,
  attempts: number,
): Bytes {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(attempts, 0);
  head.writeUInt32LE(payload.length, 4);
  return asText(head) + payload + key;
}

/** A message that waits for a retry: its name, and its value. */
export function retryFor(
  { address, payload }: Pick<Message, "address" | "payload">,
  group: string,
  attempts: number,
  trailer = "",
): { readonly name: Bytes; readonly value: Bytes } {
  const value = packRetry({ payload, key: trailer }, attempts);
  return { name: retryName({ address }, group), value };
}

/** A message that waits for its turn: what the waiting room holds of it, and its turn. */
export function waitingFor(
  { id, member, address }: Pick<Message, "id" | "member" | "address">,
  lane: string,
): { readonly id: Bytes; readonly kept: Bytes; readonly turn: Bytes } {
  const turn = `${String.fromCodePoint(lane.length)}${lane}\x80\x18${address}`;
  return { id, kept: address.slice(0, 8) + member, turn };
}

/** The bytes that a text stands for, to be sent to Redis. */
export function bytes(text: Bytes): Buffer {
  return Buffer.from(text, "latin1");
}

/** Bytes that came from Redis, as text. */
export function asText(buffer: Buffer): Bytes {
  return buffer.toString("latin1");
}
