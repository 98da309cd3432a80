import { unpackEntry, type Entry } from "../../../src/lua/places/stream.ts";
import { BATCH, type BatchRow } from "../../../src/lua/fragments/journal.ts";
import { unpackLetter } from "../../../src/lua/places/dead.ts";
import { unpackRetry, unpackRetryName } from "../../../src/lua/places/retries.ts";
import { packAddress, unpackMember } from "../../../src/queue/message/message.ts";
import { unpackTrailer } from "../../../src/queue/message/trailer.ts";
import type { QueueKeys } from "../../../src/queue/keys.ts";
import type { Database, Stream, Value } from "../../helpers/contents.ts";
import { compareIds } from "./stream-ids.ts";

/** A message in one of the places that it can be in. */
export interface Placed {
  readonly payload: string;
  readonly key: string | undefined;
  /** As bytes (latin1). */
  readonly address: string;
  readonly deadline: number;
}

export interface PlacedEntry extends Placed {
  readonly entry: Entry;
  /** The groups that still have to handle it, and the consumer that it is in flight for. */
  readonly needed: readonly {
    readonly group: string;
    readonly consumer: string | undefined;
    readonly deliveries: number;
  }[];
}

/** Where the messages of one queue, or of one partition, are. */
export interface Places {
  readonly delayed: readonly Placed[];
  /** Payloads in the LIST. */
  readonly ready: readonly string[];
  readonly entries: readonly PlacedEntry[];
  /** With the group. */
  readonly retries: readonly (Placed & {
    readonly group: string;
    readonly attempts: number;
    readonly trailer: Buffer;
  })[];
  readonly dead: readonly (Placed & { readonly group: string; readonly attempts: number })[];
  /** The open batch. */
  readonly journal: readonly (BatchRow & { readonly number: number })[];
  /** Source -> the number of the last batch that has come from there. */
  readonly arrivals: ReadonlyMap<string, number>;
  /** Business key -> address. */
  readonly index: ReadonlyMap<string, string>;
  readonly order: readonly string[];
  readonly fact: string | undefined;
  /** How many entries are in flight, over all groups. */
  readonly inFlightCount: number;
}

const known = new WeakMap<Database, Map<string, Places>>();

/** Reads where the messages of a queue are. Throws if what belongs together does not agree. */
export function placesIn(database: Database, keys: QueueKeys): Places {
  let all = known.get(database);
  if (all === undefined) known.set(database, (all = new Map()));
  let found = all.get(keys.ready);
  if (found === undefined) all.set(keys.ready, (found = read(database, keys)));
  return found;
}

function read(database: Database, keys: QueueKeys): Places {
  const of = (key: string, type: Value["type"]) => {
    const value = database.get(key)?.value;
    if (value === undefined || value.type === type) return value?.value;
    throw new Error(`${key} is a ${value.type}`);
  };
  const zset = (key: string) => (of(key, "zset") ?? []) as readonly (readonly [string, number])[];
  const hash = (key: string) => (of(key, "hash") ?? []) as readonly (readonly [string, string])[];
  const list = (key: string) => (of(key, "list") ?? []) as readonly string[];
  const stream = (key: string) => (of(key, "stream") ?? { entries: [], groups: [] }) as Stream;

  const retrying = new Map(hash(keys.retrying));
  const names = zset(keys.retries);
  if (retrying.size !== names.length) {
    throw new Error(`${names.length} retries, but ${retrying.size} messages wait for one`);
  }
  const fields = new Map(hash(keys.journal));
  return {
    delayed: zset(keys.timeouts).map(([member, deadline]) => {
      const message = unpackMember(bytes(member));
      if (message === undefined) throw new Error("a member cannot be unpacked");
      const { id, payload, key } = message;
      const address = text(packAddress(deadline, id));
      return { payload: text(payload), key, deadline, address };
    }),
    ready: list(keys.ready),
    entries: entriesOf(stream(keys.stream)),
    retries: names.map(([name, deadline]) => {
      const place = unpackRetryName(bytes(name));
      const message = unpackRetry(bytes(retrying.get(name) ?? ""));
      if (!place || !message) throw new Error("a retry cannot be unpacked");
      const { key } = unpackTrailer(message.trailer);
      const [address, payload] = [text(place.address), text(message.payload)];
      return { key, deadline, address, ...message, group: place.group, payload };
    }),
    dead: stream(keys.dead).entries.map(([id, words]) => {
      const letter = unpackLetter(id, words.map(bytes));
      const { key } = unpackTrailer(letter.trailer);
      const [address, payload] = [text(letter.address), text(letter.payload)];
      const { group, attempts } = letter;
      return { payload, key, deadline: NaN, address, group, attempts };
    }),
    journal: fields.has("rows")
      ? BATCH.rows(bytes(fields.get("rows") ?? "")).map((row) => {
          return { ...row, number: Number(fields.get("last")) };
        })
      : [],
    arrivals: new Map(hash(keys.arrivals).map(([source, number]) => [source, Number(number)])),
    index: new Map(hash(keys.businessKeys).map(([key, entry]) => [key, entry.slice(0, 24)])),
    order: [...list(keys.compacted), ...list(keys.order)],
    inFlightCount: stream(keys.stream).groups.reduce((sum, one) => sum + one.pending.length, 0),
    fact: of(keys.partitions, "string") as string | undefined,
  };
}

function entriesOf({ entries, groups }: Stream): PlacedEntry[] {
  const all = new Set(entries.map(([id]) => id));
  for (const { name, pending } of groups) {
    // An entry for one group is deleted by that group alone, though another one has read it and will skip it.
    const isGone = groups.length === 1 && pending.some(([id]) => !all.has(id));
    if (isGone) throw new Error(`${name} has an entry in flight that is gone`);
  }
  return entries.map(([id, words]) => {
    const entry = unpackEntry(id, words.map(bytes));
    if (entry === undefined) throw new Error("an entry cannot be unpacked");
    const { key } = unpackTrailer(entry.trailer);
    const needed = groups.flatMap(({ name: group, last, pending }) => {
      if (entry.group !== undefined && entry.group !== group) return [];
      const row = pending.find(([one]) => one === id);
      if (row === undefined && compareIds(id, last) <= 0) return [];
      return [{ group, consumer: row?.[1], deliveries: row?.[2] ?? 0 }];
    });
    const address = text(entry.address);
    const deadline = entry.address.readUInt32BE(0) * 2 ** 32 + entry.address.readUInt32BE(4);
    return { payload: text(entry.payload), key, address, deadline, entry, needed };
  });
}

/**
 * How often each message is in a partition, or on its way to another one. A row of an open batch is on its way until its
 * partition has had the batch.
 */
export function countIn(all: readonly Places[], of: (places: Places) => readonly string[]) {
  const count = new Map<string, number>();
  for (const payload of all.flatMap(of)) count.set(payload, (count.get(payload) ?? 0) + 1);
  return count;
}

/** The rows of open batches that have not arrived. Partition p is at position p; see {@link Places.journal}. */
export function underWay(all: readonly Places[]): (BatchRow & { readonly source: number })[] {
  return all.flatMap(({ journal }, source) =>
    journal
      .filter(({ to, number }) => (all[to]?.arrivals.get(String(source)) ?? 0) < number)
      .map((row) => ({ ...row, source })),
  );
}

/** The payload in a row of a batch. */
export function payloadOf({ kind, name, value }: BatchRow): string {
  if (kind === "message") return text(unpackMember(name)?.payload ?? name);
  if (kind === "retry" || kind === "entry") return text(unpackRetry(value)?.payload ?? value);
  return text(value);
}

/**
 * What is wrong with how the keys of one queue agree. With `sharesKeys` a message may have been offered with the key of a
 * retry: that one is newer, and when it leaves, the retry is without the key.
 */
export function disagreement(
  { delayed, retries, index, order }: Places,
  sharesKeys = false,
): string | undefined {
  const cancellable = new Map([...delayed, ...retries].map((one) => [one.address, one]));
  const holders = new Map<string, string>();
  for (const { key, payload, address } of delayed) {
    if (!order.includes(address)) return `${payload} is not in the insertion order`;
    if (key === undefined) continue;
    if (holders.has(key)) return `${payload} and ${holders.get(key)} are delayed with one key`;
    holders.set(key, payload);
    if (index.get(key) !== address) return `the index does not point to ${payload}`;
  }
  for (const { key, payload, address } of retries) {
    if (key === undefined || index.get(key) === address) continue;
    if (!sharesKeys) return `the index does not point to the retry of ${payload}`;
  }
  for (const [key, address] of index) {
    if (cancellable.get(address)?.key !== key) return `the index entry of ${key} points to nothing`;
  }
  return undefined;
}

function bytes(latin1: string): Buffer {
  return Buffer.from(latin1, "latin1");
}

function text(buffer: Buffer): string {
  return buffer.toString("latin1");
}
