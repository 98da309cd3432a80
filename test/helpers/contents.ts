// What keys hold, read and written without the library's code.

/** A key's contents. */
export interface Content {
  /** As `DUMP` returns them. */
  readonly dump: Buffer;
  /** Whether the key expires. */
  readonly isPassing: boolean;
  readonly value: Value;
  /** The same for contents that no script can tell apart. */
  readonly text: string;
}

/** All keys that exist. */
export type Database = ReadonlyMap<string, Content>;

/** Bytes as text, one character each (latin1). */
type Bytes = string;

export type Value =
  | { readonly type: "string"; readonly value: Bytes }
  | { readonly type: "list"; readonly value: readonly Bytes[] }
  | { readonly type: "zset"; readonly value: readonly (readonly [member: Bytes, score: number])[] }
  | { readonly type: "hash"; readonly value: readonly (readonly [field: Bytes, value: Bytes])[] }
  | { readonly type: "stream"; readonly value: Stream };

export interface Stream {
  readonly entries: readonly (readonly [id: string, fields: readonly Bytes[]])[];
  readonly groups: readonly StreamGroup[];
}

export interface StreamGroup {
  readonly name: string;
  /** The last id that the group was given. */
  readonly last: string;
  /** What is in flight, and how often Redis counted a delivery. */
  readonly pending: readonly (readonly [id: string, consumer: string, count: number])[];
  readonly consumers: readonly string[];
}

/** Returns type, dump, whether it expires, and value of each key, or a 0 for a key that does not exist. */
export const LOOK = `
local all = {}
for i, key in ipairs(KEYS) do
  local type, value = redis.call("TYPE", key).ok, nil
  if type == "none" then all[i] = 0
  else
    if type == "string" then value = redis.call("GET", key)
    elseif type == "list" then value = redis.call("LRANGE", key, 0, -1)
    elseif type == "hash" then value = redis.call("HGETALL", key)
    elseif type == "zset" then value = redis.call("ZRANGE", key, 0, -1, "WITHSCORES")
    else
      local groups = {}
      for j, words in ipairs(redis.call("XINFO", "GROUPS", key)) do
        local group, consumers = {}, {}
        for k = 1, #words, 2 do group[words[k]] = words[k + 1] end
        for k, fields in ipairs(redis.call("XINFO", "CONSUMERS", key, group.name)) do consumers[k] = fields[2] end
        local pending = redis.call("XPENDING", key, group.name, "-", "+", 1000)
        groups[j] = { group.name, group["last-delivered-id"], pending, consumers }
      end
      value = { redis.call("XRANGE", key, "-", "+"), groups }
    end
    all[i] = { type, redis.call("DUMP", key), redis.call("PTTL", key) > 0 and 1 or 0, value }
  end
end
return all
`;

/** The reply of {@link LOOK} for one key. */
export type Looked = 0 | [type: Buffer, dump: Buffer, isPassing: number, value: unknown];

/** Reads one key of the reply of {@link LOOK}. */
export function contentOf(looked: Looked): Content | undefined {
  if (looked === 0) return undefined;
  const [type, dump, isPassing, raw] = looked;
  const value = valueOf(type.toString() as Value["type"], raw);
  return { dump, isPassing: isPassing === 1, value, text: JSON.stringify(value) };
}

function valueOf(type: Value["type"], raw: unknown): Value {
  if (type === "string") return { type, value: asBytes(raw) };
  if (type === "list") return { type, value: (raw as unknown[]).map(asBytes) };
  if (type === "hash") return { type, value: pairs(raw).toSorted(([x], [y]) => (x < y ? -1 : 1)) };
  if (type === "stream") return { type, value: streamOf(raw as [RawEntry[], RawGroup[]]) };
  return { type, value: pairs(raw).map(([member, score]) => [member, Number(score)]) };
}

type RawEntry = [id: Buffer, fields: Buffer[]];
type RawGroup = [
  name: Buffer,
  last: Buffer,
  pending: [id: Buffer, consumer: Buffer, idle: number, count: number][],
  consumers: Buffer[],
];

function streamOf([entries, groups]: [RawEntry[], RawGroup[]]): Stream {
  return {
    entries: entries.map(([id, fields]) => [id.toString(), fields.map(asBytes)]),
    groups: groups.map(([name, last, pending, consumers]) => ({
      name: name.toString(),
      last: last.toString(),
      pending: pending.map(([id, consumer, , count]) => [id.toString(), String(consumer), count]),
      consumers: consumers.map(String).toSorted(),
    })),
  };
}

function pairs(raw: unknown): [Bytes, Bytes][] {
  const words = (raw as unknown[]).map(asBytes);
  return words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1] ?? ""]] : []));
}

function asBytes(raw: unknown): Bytes {
  return Buffer.isBuffer(raw) ? raw.toString("latin1") : String(raw);
}
