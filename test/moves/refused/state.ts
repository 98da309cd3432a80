import type { Redis } from "ioredis";
import { contentOf, LOOK, type Content, type Looked, type Value } from "../../helpers/contents.ts";

// The whole keyspace of a Redis, in a form in which two runs of a script can be compared.

/** A key and what it holds. */
export type Held = Value & Pick<Content, "isPassing">;

/** By the names of the queue's keys. */
export type State = Readonly<Record<string, Held>>;

/** Reads states. `names` are the names of the keys. Ids that the first state has keep their names. */
export async function newReader(
  redis: Redis,
  names: ReadonlyMap<string, string>,
): Promise<() => Promise<State>> {
  const look = async () => {
    const keys = await redis.keysBuffer("*");
    const all = (await redis.callBuffer("EVAL", LOOK, keys.length, ...keys)) as Looked[];
    const found = keys.map((key, i) => [key.toString("latin1"), contentOf(all[i] ?? 0)] as const);
    return found.filter(isThere).toSorted(([x], [y]) => (x < y ? -1 : 1));
  };
  // By key: an entry that a script adds may get the id of one in another stream, in the same millisecond.
  const seeded = new Map(
    (await look()).flatMap(([key, { value }]) =>
      value.type === "stream" ? [[key, new Set(value.value.entries.map(([id]) => id))]] : [],
    ),
  );
  return async () =>
    Object.fromEntries(
      (await look()).map(([key, { value, isPassing }]) => [
        names.get(key) ?? key,
        { isPassing, ...(value.type === "stream" ? numbered(value, seeded.get(key)) : value) },
      ]),
    );
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

function isThere<Key>(
  found: readonly [Key, Content | undefined],
): found is readonly [Key, Content] {
  return found[1] !== undefined;
}

/** A stream as it is compared: ids that the script has made are numbered. */
function numbered(
  { type, value: { entries, groups } }: Extract<Value, { readonly type: "stream" }>,
  seeded = new Set<string>(),
): Value {
  const added = entries.map(([id]) => id).filter((id) => !seeded.has(id));
  const shown = (id: string) => (added.includes(id) ? `new ${added.indexOf(id)}` : id);
  return {
    type,
    value: {
      entries: entries.map(([id, fields]) => [shown(id), fields]),
      groups: groups.map((group) => ({
        ...group,
        last: shown(group.last),
        pending: group.pending.map(([id, consumer, count]) => [shown(id), consumer, count]),
      })),
    },
  };
}
