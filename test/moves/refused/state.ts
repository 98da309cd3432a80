import type { Redis } from "ioredis";

// The whole keyspace of a Redis, in a form in which two runs of a script can be compared.

/** A key and what it holds. Bytes are text, one character each (latin1). */
export interface Held {
  readonly type: string;
  /** Whether it expires. */
  readonly isPassing: boolean;
  readonly value: unknown;
}

/** By the names of the queue's keys. */
export type State = Readonly<Record<string, Held>>;

/** A stream as it is compared. Ids that the script has made are numbered. */
export interface StreamValue {
  readonly entries: readonly (readonly [id: string, fields: readonly string[]])[];
  readonly groups: readonly {
    readonly name: string;
    /** The last id that the group was given. */
    readonly last: string;
    /** What is in flight, and how often it was delivered. */
    readonly pending: readonly (readonly [id: string, consumer: string, count: number])[];
    readonly consumers: readonly string[];
  }[];
}

/** Reads states. `names` are the names of the keys. Ids that the first state has keep their names. */
export async function newReader(
  redis: Redis,
  names: ReadonlyMap<string, string>,
): Promise<() => Promise<State>> {
  const readRaw = async () => {
    const json = ((await redis.callBuffer("EVAL", LOOK, 0)) as Buffer).toString("latin1");
    return listOf(JSON.parse(json) as Raw[]);
  };
  const streams = (await readRaw()).filter(([, type]) => type === "stream");
  // By key: an entry that a script adds may get the id of one in another stream, in the same millisecond.
  const seeded = new Map(
    streams.map(([key, , , value]) => [
      key,
      new Set(listOf((value as RawStream)[0]).map(([id]) => id)),
    ]),
  );
  return async () => {
    const raw = (await readRaw()).toSorted(([x], [y]) => (x < y ? -1 : 1));
    return Object.fromEntries(
      raw.map(([key, type, isPassing, value]) => [
        names.get(key) ?? key,
        { type, isPassing: isPassing === 1, value: valueOf(type, value, seeded.get(key)) },
      ]),
    );
  };
}

const valueIn = (held: Held | undefined) => JSON.stringify(held?.value);

/** What differs, for a person to read. */
export function difference(expected: State, found: State): string {
  return [...new Set([...Object.keys(expected), ...Object.keys(found)])]
    .filter((key) => JSON.stringify(expected[key]) !== JSON.stringify(found[key]))
    .map((key) => `${key}: ${valueIn(expected[key])} -> ${valueIn(found[key])}`)
    .join("; ")
    .slice(0, 500);
}

/** A key as {@link LOOK} returns it. */
type Raw = readonly [key: string, type: string, isPassing: number, value: unknown];

type RawStream = [
  entries: [id: string, fields: string[]][],
  groups: [
    name: string,
    last: string,
    pending: [id: string, consumer: string, idle: number, count: number][],
    consumers: string[],
  ][],
];

const LOOK = `
local all = {}
for _, key in ipairs(redis.call("KEYS", "*")) do
  local type, value = redis.call("TYPE", key).ok, nil
  if type == "string" then value = redis.call("GET", key)
  elseif type == "list" then value = redis.call("LRANGE", key, 0, -1)
  elseif type == "hash" then value = redis.call("HGETALL", key)
  elseif type == "zset" then value = redis.call("ZRANGE", key, 0, -1, "WITHSCORES")
  else
    local groups = {}
    for i, words in ipairs(redis.call("XINFO", "GROUPS", key)) do
      local group, consumers = {}, {}
      for j = 1, #words, 2 do group[words[j]] = words[j + 1] end
      for j, fields in ipairs(redis.call("XINFO", "CONSUMERS", key, group.name)) do consumers[j] = fields[2] end
      local pending = redis.call("XPENDING", key, group.name, "-", "+", 1000)
      groups[i] = { group.name, group["last-delivered-id"], pending, consumers }
    end
    value = { redis.call("XRANGE", key, "-", "+"), groups }
  end
  all[#all + 1] = { key, type, redis.call("PTTL", key) > 0 and 1 or 0, value }
end
return cjson.encode(all)
`;

/** cjson writes an empty table as an object. */
function listOf<Item>(value: readonly Item[] | object): readonly Item[] {
  return Array.isArray(value) ? (value as Item[]) : [];
}

function valueOf(type: string, value: unknown, seeded = new Set<string>()): unknown {
  if (type === "hash") return pairs(value as string[]).toSorted(([x], [y]) => (x < y ? -1 : 1));
  if (type === "zset") return pairs(value as string[]);
  return type === "stream" ? streamOf(value as RawStream, seeded) : value;
}

function pairs(words: readonly string[]): [string, string][] {
  return listOf(words).flatMap((word, i, all) => (i % 2 === 0 ? [[word, all[i + 1] ?? ""]] : []));
}

function streamOf([entries, groups]: RawStream, seeded: ReadonlySet<string>): StreamValue {
  const ids = listOf(entries).map(([id]) => id);
  const added = ids.filter((id) => !seeded.has(id));
  const shown = (id: string) => (added.includes(id) ? `new ${added.indexOf(id)}` : id);
  return {
    entries: listOf(entries).map(([id, fields]) => [shown(id), fields]),
    groups: listOf(groups).map(([name, last, pending, consumers]) => ({
      name,
      last: shown(last),
      pending: listOf(pending).map(([id, consumer, , count]) => [shown(id), consumer, count]),
      consumers: listOf(consumers).toSorted(),
    })),
  };
}
