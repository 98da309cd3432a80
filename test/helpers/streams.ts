import type { Redis } from "ioredis";
import type { QueueKeys } from "../../src/queue/keys.ts";
import { unpackRetry, unpackRetryName } from "../../src/lua/places/retries.ts";
import { toldBy } from "./failures-in.ts";
import { bytes, newMoves, type Bytes, type QueueState } from "./moves.ts";

// For tests of single scripts of a reliable queue: write entries and groups without the library's code, run ONE script,
// read all keys back.

/**
 * The fields of an entry. The address is left out, since it follows from the payload. The failures, `f`, are separate from
 * the trailer, `t`.
 */
export type Fields = Readonly<Record<string, string>>;

/** A message that waits for a retry. */
export interface Retrying {
  readonly p: string;
  readonly n: number;
  readonly g: string;
  /** The trailer, behind the payload. */
  readonly t?: Bytes;
  /** The failures in the trailer; see {@link toldBy}. */
  readonly f?: string;
}

/** The contents of all keys of a reliable queue. Empty keys are left out. */
export interface StreamState extends Omit<QueueState, "stream" | "retries" | "dead"> {
  /** In the order of the stream. */
  readonly stream?: readonly Fields[];
  /** The payloads in flight, by group and consumer. "gone" stands for an entry that is not in the stream any more. */
  readonly inFlight?: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  /** By due time. */
  readonly retries?: readonly Retrying[];
  readonly dead?: readonly Fields[];
}

/** A reliable queue that belongs to one test. */
export interface Streams {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  /** Creates groups that begin at the start of the stream. */
  readonly addGroup: (...groups: readonly string[]) => Promise<void>;
  /** Appends entries, by their payloads or by their fields; returns their ids. */
  readonly add: (...entries: readonly (string | Fields)[]) => Promise<string[]>;
  /** Delivers the next entries to a consumer; returns their ids. */
  readonly deliver: (group: string, consumer: string, count?: number) => Promise<string[]>;
  readonly seed: (state: QueueState) => Promise<void>;
  readonly snapshot: () => Promise<StreamState>;
}

/** A queue with these groups, which begin at the start of the stream. */
export function newStreams(...groups: readonly string[]): Promise<Streams> {
  return newStreamsAt(undefined, ...groups);
}

/** Like {@link newStreams}, on another Redis. */
export async function newStreamsAt(
  url: string | undefined,
  ...groups: readonly string[]
): Promise<Streams> {
  const moves = await newMoves(url);
  const { redis, keys } = moves;
  const addGroup = async (...added: readonly string[]) => {
    for (const group of added) await redis.xgroup("CREATE", keys.stream, group, "0", "MKSTREAM");
  };
  await addGroup(...groups);
  return {
    ...moves,
    addGroup,
    add: async (...entries) => {
      const ids: (string | null)[] = [];
      for (const entry of entries) {
        const fields = typeof entry === "string" ? { p: entry } : entry;
        const all = { a: addressOf(fields["p"] ?? "-"), ...fields };
        const words = Object.entries(all).flatMap(([name, value]) => [name, bytes(value)]);
        ids.push(await redis.xadd(keys.stream, "*", ...words));
      }
      return ids.map(String);
    },
    deliver: async (group, consumer, count = 1000) => {
      const delivered = await redis.xreadgroup(
        ...(["GROUP", group, consumer, "COUNT", count, "STREAMS", keys.stream, ">"] as const),
      );
      const [[, entries]] = (delivered ?? [["", []]]) as [[string, [id: string, unknown][]]];
      return entries.map(([id]) => id);
    },
    snapshot: async () => {
      const { groups: _, retrying: __, ...state } = await moves.snapshot();
      const all = { ...state, ...(await read(redis, keys)) };
      return Object.fromEntries(Object.entries(all).filter(([, of]) => Object.keys(of).length > 0));
    },
  };
}

/** The address of a message, 24 bytes, by its payload. */
function addressOf(payload: string): Bytes {
  return payload.padEnd(24, ".").slice(0, 24);
}

async function read(redis: Redis, keys: QueueKeys): Promise<StreamState> {
  const payloads = new Map<string, string>();
  const entries = async (key: string) => {
    if ((await redis.type(key)) !== "stream") return [];
    const found = await redis.xrangeBuffer(key, "-", "+");
    return found.map(([id, words]) => {
      const fields: Record<string, string> = {};
      for (let i = 0; i < words.length; i += 2) {
        fields[String(words[i])] = (words[i + 1] as Buffer).toString("latin1");
      }
      payloads.set(String(id), fields["p"] ?? "foreign");
      // The place names an entry that is mostly gone.
      const { a = "", t, o: _, ...others } = fields;
      // Show an address only if it does not follow from the payload.
      const isShown = a !== addressOf(fields["p"] ?? "-");
      return { ...(isShown && { a }), ...others, ...(t !== undefined && withTold(t)) };
    });
  };
  const dead = await entries(keys.dead);
  const stream = await entries(keys.stream);
  const inFlight: Record<string, Record<string, string[]>> = {};
  const isStream = (await redis.type(keys.stream)) === "stream";
  const groups = isStream ? ((await redis.xinfo("GROUPS", keys.stream)) as string[][]) : [];
  for (const [, group = ""] of groups) {
    const rows = await redis.xpending(keys.stream, group, "-", "+", 10_000);
    for (const [id, consumer] of rows as [string, string][]) {
      ((inFlight[group] ??= {})[consumer] ??= []).push(payloads.get(id) ?? "gone");
    }
  }
  return { stream, dead, inFlight, retries: await retries(redis, keys) };
}

/** Reads the retries. Throws if the ZSET and the HASH do not have the same names. */
async function retries(redis: Redis, keys: QueueKeys): Promise<Retrying[]> {
  const isThere = (await redis.type(keys.retries)) === "zset";
  const names = isThere ? await redis.zrangeBuffer(keys.retries, "0", "-1") : [];
  const count = (await redis.type(keys.retrying)) === "hash" ? await redis.hlen(keys.retrying) : 0;
  if (names.length !== count) throw new Error(`${names.length} retries, but ${count} wait`);
  const found: Retrying[] = [];
  for (const name of names) {
    const value = await redis.hgetBuffer(keys.retrying, name);
    const retry = value && unpackRetry(value);
    const place = unpackRetryName(name);
    if (!retry || !place) throw new Error(`no retry: ${name.toString("latin1")}`);
    const p = retry.payload.toString("latin1");
    if (place.address.toString("latin1") !== addressOf(p)) throw new Error(`not its address: ${p}`);
    const told = withTold(retry.trailer.toString("latin1"));
    found.push({ p, n: retry.attempts, g: place.group, ...told });
  }
  return found;
}

function withTold(trailer: Bytes): { readonly t?: Bytes; readonly f?: string } {
  const { t, f } = toldBy(trailer);
  return { ...(t !== "" && { t }), ...(f !== "" && { f }) };
}

/** One row for each entry; the other columns are the same in all. */
export function rowsOf<Others extends object>(
  ids: readonly string[],
  others: Others,
): ({ entry: string } & Others)[] {
  return ids.map((entry) => ({ entry, ...others }));
}
