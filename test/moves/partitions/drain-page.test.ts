import { expect, test } from "vitest";
import { drainPage, type DrainedPage } from "../../../src/lua/partitions/drain-page.ts";
import { unpackRetry } from "../../../src/lua/places/retries.ts";
import { run } from "../../../src/lua/script.ts";
import type { Batch } from "../../../src/lua/fragments/journal.ts";
import type { RedisClient } from "../../../src/redis/client.ts";
import { Random } from "../../fault/garbage.ts";
import { eventually } from "../../helpers/eventually.ts";
import { toldBy } from "../../helpers/failures-in.ts";
import {
  asText,
  bytes,
  message,
  newMoves,
  packRetry,
  retryName,
  type Fields,
  type Message,
  type Moves,
  type QueueState,
} from "../../helpers/moves.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { allTo, drop, push, rowsOf, type Row } from "../../helpers/partitions.ts";
import { newRedis } from "../../helpers/redis.ts";

const [a, b, c] = [message("a", 1000, "key"), message("b", 2000), message("c", 3000)];
const INTO = 2;
const NOTHING = { delayed: 0, ready: 0, inFlight: 0, dead: 0, quarantined: 0, retrying: 0 };
const DEAD = "delayline:1:00000000-0000-4000-8000-000000000000"; // as older releases made it

const UUID = "00000000-0000-4000-8000-000000000000";
const died = (attempt: number) => `its consumer died in delivery ${attempt}`;

const entryOf = ({ address, payload, key }: Message, more: Fields = {}): Fields => ({
  a: address,
  p: payload,
  ...(key !== "" && { t: key }),
  ...more,
});
const row = (one: Message, group: string, attempts = 0, score = "") => ({
  to: 1,
  kind: "entry",
  score,
  name: retryName(one, group),
  value: packRetry(one, attempts),
});
const element = (kind: string, value: string) => ({ to: INTO, kind, score: "", name: "", value });

async function drain(
  { keys, redis }: Pick<Moves, "keys"> & { redis: RedisClient },
  limit = 100,
  maxBytes = 1_000_000,
  timeout = 60_000,
): Promise<DrainedPage> {
  const removed = { own: 0, isRemoved: 1, epoch: 2, after: "", letter: "", fenced: "" };
  const args = { ...removed, limit, maxBytes, into: INTO, buckets: allTo(1), timeout };
  return await run(redis, drainPage, keys, args);
}

/** The value of an entry's row, with the failures apart from the trailer. */
function tellRetry(value: string) {
  const retry = unpackRetry(bytes(value));
  const told = toldBy(asText(retry?.trailer ?? Buffer.alloc(0)));
  return { n: retry?.attempts, p: asText(retry?.payload ?? Buffer.alloc(0)), ...told };
}

/** The fields of a dead letter's row, likewise. Each field has a short MessagePack string. */
function tellLetter(value: string) {
  const words: string[] = [];
  let at = 1;
  while (at < value.length) {
    const head = value.codePointAt(at) as number;
    // 0xd9: the next byte is the length; below that a fixed string.
    const [start, length] =
      head === 0xd9 ? [at + 2, value.codePointAt(at + 1) as number] : [at + 1, head - 0xa0];
    words.push(value.slice(start, start + length));
    at = start + length;
  }
  const letter: Record<string, string> = {};
  for (let i = 0; i < words.length; i += 2) letter[words[i] as string] = words[i + 1] as string;
  return { ...letter, ...toldBy(letter["t"] ?? "") };
}

/** Drains until no more is left, and returns all rows. */
async function drainAll(queue: Moves, limit: number) {
  const rows = [];
  for (let page = 0; ; page++) {
    expect(page).toBeLessThan(20);
    const batch = await drain(queue, limit);
    expect(batch.rows.length).toBeLessThanOrEqual(limit);
    rows.push(...rowsOf(batch));
    if (batch.number > 0) expect(await drop(queue, batch)).toBe(true);
    if (!batch.isMore) return { rows, left: batch.left };
  }
}

const lists: QueueState = {
  ready: ["r1", "r2", "r3"],
  quarantine: ["q"],
  unreadable: ["u"],
  dead: [
    ["1-0", "a", a.address, "p", "a", "g", "g"],
    ["2-0", "what", "is this"],
  ],
};

test("the LISTs and dead letters leave from the head on, a few at a time", async () => {
  const queue = await newMoves();
  await queue.seed({ ...lists, timeouts: [a.delayed] });
  const first = await drain(queue, 2);
  expect(rowsOf(first)).toEqual([element("ready", "r1"), element("ready", "r2")]);
  const left = { ...NOTHING, delayed: 1, ready: 1, dead: 2, quarantined: 2 };
  expect(first).toMatchObject({ isOld: false, isMore: true, left });
  // While a batch is moving, nothing else is taken out.
  expect(await drain(queue)).toEqual({ ...first, isOld: true });
  const { journal: _open, ...rest } = await queue.snapshot();
  expect(rest).toEqual({ ...lists, timeouts: [a.delayed], ready: ["r3"] });
  await drop(queue, first);
  const all = await drainAll(queue, 3);
  expect(all.rows.map(({ kind, value }) => (kind === "dead" ? kind : value))).toEqual([
    "r3",
    "q",
    "u",
    "dead",
    "dead",
  ]);
  expect(all.left).toEqual({ ...NOTHING, delayed: 1 });
  expect(Object.keys(await queue.snapshot())).toEqual(["timeouts", "journal"]);
});

test("a dead letter arrives as it was", async () => {
  const queue = await newMoves();
  await queue.seed({ dead: lists.dead ?? [] });
  const batch = await drain(queue);
  expect(rowsOf(batch).map(({ to }) => to)).toEqual([1, 1]);
  const other = await newMoves();
  await push(other, batch);
  const { dead = [] } = await other.snapshot();
  expect(dead.map(([, ...fields]) => fields)).toEqual(lists.dead?.map(([, ...fields]) => fields));
});

test("a page ends when it is large", async () => {
  const queue = await newMoves();
  await queue.seed({ ready: Array.from({ length: 30 }, () => "x".repeat(100)) });
  const { rows, isMore } = await drain(queue, 100, 500);
  expect([rows.length, isMore]).toEqual([10, true]);
});

/** Two groups: `g` has received and acknowledged `a`, and `h` has received nothing. */
async function seedGroups(queue: Moves): Promise<void> {
  const { redis, keys } = queue;
  await queue.seed({ groups: ["g", "h"] });
  await queue.seed({
    stream: [
      entryOf(a),
      entryOf(b, { n: "2", d: "1" }),
      entryOf(c, { g: "h" }),
      { what: "is this" },
    ],
  });
  await redis.xreadgroup("GROUP", "g", "me", "COUNT", 1, "STREAMS", keys.stream, ">");
  const [[id] = [""]] = await redis.xrange(keys.stream, "-", "+", "COUNT", 1);
  await redis.xack(keys.stream, "g", id);
}

test.each([1, 2, 100])("entries, for each group by itself, by %i", async (limit) => {
  const queue = await newMoves();
  await seedGroups(queue);
  const { rows, left } = await drainAll(queue, limit);
  expect(rows).toEqual([
    row(b, "g", 2, "1"),
    element("unreadable", "whatis this"),
    row(a, "h"),
    row(b, "h", 2, "1"),
    row(c, "h"),
  ]);
  expect(left).toEqual(NOTHING);
  expect(Object.keys(await queue.snapshot())).toEqual(["groups", "journal"]);
});

test("entries in flight stay while their consumer lives; then they move, and the delivery counts", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  await queue.seed({ groups: ["g"] });
  await queue.seed({ stream: [entryOf(a), entryOf(b, { g: "g", n: "1" }), entryOf(c)] });
  const alive = DEAD.replace(":1:", ":60000:");
  await redis.xreadgroup("GROUP", "g", alive, "COUNT", 1, "STREAMS", keys.stream, ">");
  await redis.xreadgroup("GROUP", "g", DEAD, "COUNT", 1, "STREAMS", keys.stream, ">");
  const rows: Row[] = [];
  await eventually(async () => {
    const batch = await drain(queue);
    await drop(queue, batch);
    rows.push(...rowsOf(batch));
    return rows.length === 2;
  });
  const told = rows.map(({ name, score, value }) => [name, score, tellRetry(value)]);
  expect(told).toEqual(
    expect.arrayContaining([
      [retryName(c, "g"), "", { n: 0, p: "c", t: "", f: "" }],
      [retryName(b, "g"), "1", { n: 2, p: "b", t: "", f: `2: ${died(2)}` }],
    ]),
  );
  expect((await queue.snapshot()).stream).toEqual([entryOf(a)]);
  expect(await drain(queue)).toMatchObject({ number: 0, isMore: false, left: { inFlight: 1 } });
});

test("an entry that had a slot says so on its way", async () => {
  const queue = await newMoves();
  await queue.seed({ groups: ["g"] });
  await queue.seed({
    stream: [
      entryOf(a, { l: "2" }),
      entryOf(b, { l: "1", d: "1", u: "8000000000000" }),
      entryOf(c, { l: "what is this" }),
    ],
  });
  const rows = rowsOf(await drain(queue));
  expect(rows.map(({ score }) => score)).toEqual(["/2", "1:8000000000000/1", ""]);
});

test.each([
  [`delayline:1:3:${UUID}`, 3],
  [`delayline:1:1:${UUID}`, 1],
  [`delayline:1:1000000:${UUID}`, 1_000_000],
  // Names that do not tell it: nothing dies.
  [DEAD, Infinity],
  [`delayline:1:0:${UUID}`, Infinity],
  ["worker-1", Infinity],
])("what is in flight for the dead %s dies after %d deliveries", async (consumer, most) => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  await queue.seed({ groups: ["g", "h"] });
  await queue.seed({
    stream: [
      entryOf(a),
      entryOf(b, { n: "1", g: "g" }),
      entryOf(c, { n: "2", d: "1" }),
      entryOf(a, { n: "9", g: "h" }),
    ],
  });
  await redis.xreadgroup("GROUP", "g", consumer, "STREAMS", keys.stream, ">");
  await redis.xgroup("SETID", keys.stream, "h", "$");
  let rows: Row[] = [];
  await eventually(async () => {
    const batch = await drain(queue, 100, 1_000_000, consumer.startsWith("delayline") ? 60_000 : 1);
    rows = rowsOf(batch);
    return batch.left.inFlight === 0;
  });
  const expected = (
    [
      [a, 1],
      [b, 2],
      [c, 3],
    ] as const
  ).map(([one, n]) => {
    const f = `${n}: ${died(n)}`;
    if (n < most) {
      return [1, "1", retryName(one, "g"), { n, p: one.payload, t: one.key, f }];
    }
    const letter = { a: one.address, p: one.payload, n: String(n), g: "g", r: died(n) };
    return [1, "", "", { ...letter, t: one.key, f }];
  });
  const found = rows.map(({ to, kind, score, name, value }) => [
    to,
    score,
    name,
    kind === "dead" ? tellLetter(value) : tellRetry(value),
  ]);
  expect(found).toEqual(expected);
  expect(Object.keys(await queue.snapshot())).toEqual(["groups", "journal"]);
});

test("a dead letter that a drain made arrives once, however often the script is sent", async () => {
  const [queue, other] = [await newMoves(), await newMoves()];
  const { redis, keys } = queue;
  await queue.seed({ groups: ["g"] });
  await queue.seed({ stream: [entryOf(a)] });
  await redis.xreadgroup("GROUP", "g", `delayline:1:1:${UUID}`, "STREAMS", keys.stream, ">");
  let batch = await drain(queue);
  await eventually(async () => (batch = await drain(queue)).left.inFlight === 0);
  for (let i = 0; i < 2; i++) {
    const { number, rows } = await drain(queue);
    expect([number, rows]).toEqual([batch.number, batch.rows]);
    expect(await push(other, batch)).toBe(i === 0);
  }
  const { dead = [], stream } = await other.snapshot();
  expect([dead.length, stream]).toEqual([1, undefined]);
  await drop(queue, batch);
  expect((await drain(queue)).left).toEqual(NOTHING);
});

test("what a fenced holder had in flight leaves a partition that stays, and counts unless it was left on purpose", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  await queue.seed({ groups: ["g"] });
  await queue.seed({ stream: [entryOf(a), entryOf(b), entryOf(c, { n: "4" })] });
  const [once, twice, released] = [1, 2, 3].map((n) => `delayline:60000:${n}:${UUID}`);
  for (const consumer of [once, twice, released] as string[]) {
    await redis.xreadgroup("GROUP", "g", consumer, "COUNT", 1, "STREAMS", keys.stream, ">");
  }
  const batch = await run(redis, drainPage, keys, {
    own: 0,
    limit: 100,
    maxBytes: 1_000_000,
    into: 0,
    buckets: allTo(1),
    timeout: 60_000,
    isRemoved: 0,
    epoch: 2,
    after: "",
    letter: "",
    fenced: `${once}\n${twice}\n=${released}`,
  });
  const found = rowsOf(batch).map(({ kind, score, value }) => [
    kind,
    score,
    kind === "dead" ? tellLetter(value) : tellRetry(value),
  ]);
  const letter = { a: a.address, p: "a", n: "1", g: "g", r: died(1) };
  expect(found).toEqual([
    ["dead", "", { ...letter, t: a.key, f: `1: ${died(1)}` }],
    ["entry", "1", { n: 1, p: "b", t: "", f: `1: ${died(1)}` }],
    ["entry", "", { n: 4, p: "c", t: "", f: "" }],
  ]);
  expect(batch.left.inFlight).toBe(0);
});

test("what fenced holders had in flight leaves in the order of its places, page by page", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  await queue.seed({ groups: ["g"] });
  await queue.seed({ stream: [entryOf(a), entryOf(b), entryOf(c)] });
  const [one, two] = [1, 2].map((n) => `delayline:60000:${n}:${UUID}`);
  const first = (await redis.xrange(keys.stream, "-", "+", "COUNT", 1))[0]?.[0] as string;
  await redis.xreadgroup("GROUP", "g", "gone", "COUNT", 1, "STREAMS", keys.stream, ">");
  await redis.xack(keys.stream, "g", first);
  for (const consumer of [one, two] as string[]) {
    await redis.xreadgroup("GROUP", "g", consumer, "COUNT", 1, "STREAMS", keys.stream, ">");
  }
  // A message that failed has a new entry in its place, which is before the other two.
  const kept = await redis.xadd(
    keys.stream,
    "*",
    ...Object.entries(entryOf(a, { n: "1", g: "g", o: first }))
      .flat()
      .map((word) => bytes(word)),
  );
  const claim = ["RETRYCOUNT", 0, "FORCE", "JUSTID"] as const;
  await redis.xclaim(keys.stream, "g", two as string, 0, kept as string, ...claim);
  const found: unknown[] = [];
  for (let page = 0; page < 3; page++) {
    const batch = await run(redis, drainPage, keys, {
      own: 0,
      limit: 1,
      maxBytes: 1_000_000,
      into: 0,
      buckets: allTo(1),
      timeout: 60_000,
      isRemoved: 0,
      epoch: 2,
      after: "",
      letter: "",
      fenced: `=${one}\n=${two}`,
    });
    found.push(...rowsOf(batch).map(({ value }) => tellRetry(value).p));
    expect(await drop(queue, batch)).toBe(true);
  }
  expect(found).toEqual(["a", "b", "c"]);
});

/** A table in which the buckets of these messages belong to partition 1, and all others to 0. */
function toOne(...messages: readonly Message[]): Buffer {
  const table = Buffer.alloc(1024, 0);
  for (const { address } of messages) {
    const at = bytes(address);
    table[at.readUInt16BE(at.length - 2) % 1024] = 1;
  }
  return table;
}

/** Drains partition 0, which stays, in pages of `limit`; returns the rows. */
async function drainStaying({ keys, redis }: Moves, buckets: Buffer, limit: number) {
  const rows = [];
  let [after, letter] = ["", ""];
  for (let page = 0; ; page++) {
    expect(page).toBeLessThan(20);
    const staying = { own: 0, isRemoved: 0, epoch: 2, after, letter, fenced: "" };
    const args = { ...staying, limit, maxBytes: 1_000_000, into: 0, buckets, timeout: 60_000 };
    const batch = await run(redis, drainPage, keys, args);
    ({ after, letter } = batch);
    rows.push(...batch.rows);
    if (batch.number > 0) {
      await push({ keys, redis } as Moves, batch, 0);
      await drop({ keys, redis } as Moves, batch);
    }
    if (!batch.isMore && batch.rows.length === 0) return rowsOf({ ...batch, rows });
  }
}

test.each([1, 2, 100])(
  "out of a partition that stays go only entries that belong elsewhere, and the order stays, by %i",
  async (limit) => {
    const queue = await newMoves();
    const { redis, keys } = queue;
    const [d, e] = [message("d", 4000), message("e", 5000)];
    await queue.seed({
      groups: ["g"],
      ready: ["x"],
      dead: [a, b].map(({ address, payload }, i) => {
        return [`${i + 1}-0`, "a", address, "p", payload, "n", "1", "g", "g", "r", "bad"];
      }),
    });
    await queue.seed({ stream: [a, b, c, d, e].map((one) => entryOf(one)) });
    await redis.xreadgroup("GROUP", "g", DEAD, "COUNT", 1, "STREAMS", keys.stream, ">");
    // The first one is in flight, and stays though it belongs elsewhere.
    const [letter, ...entries] = await drainStaying(queue, toOne(a, c, e), limit);
    expect(letter).toMatchObject({ to: 1, kind: "dead" });
    expect(entries).toEqual([row(c, ""), row(e, "")]);
    const { stream = [], ready, dead = [] } = await queue.snapshot();
    expect(stream.map(({ p }) => p)).toEqual(["a", "b", "d"]);
    expect(dead.map((words) => words[4])).toEqual(["b"]);
    expect(ready).toEqual(["x"]);
    const rest = await redis.xreadgroup("GROUP", "g", "next", "STREAMS", keys.stream, ">");
    expect(JSON.stringify(rest)).toMatch(/"p","b".*"p","d"/);
  },
);

test.each([1, 2, 100])(
  "groups that have been given different entries: each gets the rest in order, by %i",
  async (limit) => {
    const queue = await newMoves();
    const { redis, keys } = queue;
    await queue.seed({ groups: ["g", "h"] });
    await queue.seed({ stream: [a, b, c].map((one) => entryOf(one)) });
    await redis.xreadgroup("GROUP", "g", DEAD, "COUNT", 1, "STREAMS", keys.stream, ">");
    const found = await drainStaying(queue, toOne(b), limit);
    expect(found.filter(({ to }) => to === 1)).toEqual(
      expect.arrayContaining([row(b, "g"), row(b, "h")]),
    );
    const read = async (group: string) =>
      JSON.stringify(await redis.xreadgroup("GROUP", group, "next", "STREAMS", keys.stream, ">"));
    expect(await read("g")).toMatch(/"p","c"/);
    expect(await read("h")).toMatch(/"p","a".*"p","c"/);
    // What is in flight stays.
    expect(await redis.xpending(keys.stream, "g", "-", "+", 10, DEAD)).toHaveLength(1);
  },
);

test("groups that have been given different entries: another process goes on where one stopped", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const all = Array.from({ length: 6 }, (_, i) => message(`m${i}`, 1000 + i));
  await queue.seed({ groups: ["g", "h"] });
  await queue.seed({ stream: all.map((one) => entryOf(one)) });
  await redis.xreadgroup("GROUP", "h", DEAD, "COUNT", 1, "STREAMS", keys.stream, ">");
  // It dies after its first page. All messages belong here.
  const args = { own: 0, isRemoved: 0, epoch: 2, after: "", letter: "", fenced: "" };
  const page = { limit: 2, maxBytes: 1_000_000, into: 0, buckets: allTo(0), timeout: 60_000 };
  const batch = await run(redis, drainPage, keys, { ...args, ...page });
  expect(batch.rows.length).toBeGreaterThan(0);
  await push(queue, batch, 0);
  await drop(queue, batch);
  await drainStaying(queue, allTo(0), 2);
  for (const [group, rest] of [
    ["g", all],
    ["h", all.slice(1)],
  ] as const) {
    const read = await redis.xreadgroup("GROUP", group, "next", "STREAMS", keys.stream, ">");
    const [[, entries]] = read as [[string, [string, string[]][]]];
    const own = entries.flatMap(([, fields]) => {
      const valueOf = (name: string) => fields[fields.indexOf(name) + 1];
      return !fields.includes("g") || valueOf("g") === group ? [valueOf("p")] : [];
    });
    expect([group, own]).toEqual([group, rest.map(({ payload }) => payload)]);
  }
});

test("groups that are given different entries between two pages: the bound says so from then on", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const all = Array.from({ length: 6 }, (_, i) => message(`m${i}`, 1000 + i));
  await queue.seed({ groups: ["g", "h"] });
  await queue.seed({ stream: all.map((one) => entryOf(one)) });
  const [newest] = (await redis.xrevrange(keys.stream, "+", "-", "COUNT", 1)).map(([id]) => id);
  const args = { own: 0, isRemoved: 0, epoch: 2, after: "", letter: "", fenced: "" };
  const page = { limit: 2, maxBytes: 1_000_000, into: 0, buckets: allTo(0), timeout: 60_000 };
  const bounds: (string | null)[] = [];
  for (const reads of [[], ["g"], ["h"]]) {
    for (const group of reads) {
      await redis.xreadgroup("GROUP", group, DEAD, "COUNT", 1, "STREAMS", keys.stream, ">");
    }
    const batch = await run(redis, drainPage, keys, { ...args, ...page });
    bounds.push(await redis.hget(keys.journal, "bound"));
    if (batch.rows.length > 0) await drop(queue, batch);
  }
  expect(bounds).toEqual([`2 some ${newest}`, `2 all ${newest}`, `2 all ${newest}`]);
});

test("an entry that was appended and kept in flight goes once", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  await queue.seed({ groups: ["g"] });
  await queue.seed({ stream: [a, b, c].map((one) => entryOf(one)) });
  const [, second] = await redis.xrange(keys.stream, "-", "+");
  // The group has not been given anything, and the second entry is in flight.
  await redis.xclaim(keys.stream, "g", DEAD, 0, second?.[0] ?? "", "FORCE", "JUSTID");
  const args = {
    own: 0,
    limit: 100,
    maxBytes: 1_000_000,
    into: 1,
    buckets: allTo(1),
    timeout: 60_000,
    epoch: 2,
    after: "",
    letter: "",
    fenced: `=${DEAD}`,
  };
  const { rows, left } = await run(redis, drainPage, keys, { ...args, isRemoved: 1 });
  const found = rowsOf({ rows } as Batch).map(({ value }) => tellRetry(value).p);
  expect([found, left]).toEqual([["b", "a", "c"], NOTHING]);
});

test("a message that is held back stays so, and its consumer's death counts nothing", async () => {
  const [queue, other] = [await newMoves(), await newMoves()];
  const { redis, keys } = queue;
  const until = 4_000_000_000_000;
  await queue.seed({ groups: ["g"] });
  await queue.seed({ stream: [entryOf(a, { n: "1", g: "g", u: String(until) })] });
  await redis.xreadgroup("GROUP", "g", DEAD, "STREAMS", keys.stream, ">");
  let batch = await drain(queue);
  await eventually(async () => {
    if (batch.rows.length === 0) batch = await drain(queue);
    expect(rowsOf(batch)).toEqual([row(a, "g", 1, `:${until}`)]);
  });
  await push(other, batch);
  const { stream } = await other.snapshot();
  expect(stream).toEqual([entryOf(a, { n: "1", g: "g", u: String(until) })]);
});

test("a deleted entry in flight is acknowledged", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  await queue.seed({ groups: ["g"] });
  await queue.seed({ stream: [entryOf(a)] });
  await redis.xreadgroup("GROUP", "g", DEAD, "STREAMS", keys.stream, ">");
  await redis.xtrim(keys.stream, "MAXLEN", 0);
  await eventually(async () => (await drain(queue)).left.inFlight === 0);
  expect(Object.keys(await queue.snapshot())).toEqual(["groups", "journal"]);
});

test("a stream without groups yields entries for all", async () => {
  const queue = await newMoves();
  await queue.seed({ stream: [entryOf(a), entryOf(b, { g: "gone" })] });
  const { rows, left } = await drainAll(queue, 100);
  expect(rows).toEqual([row(a, ""), row(b, "gone")]);
  expect(left).toEqual(NOTHING);
});

test("the greatest stream id is handled in every key", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const last = `${2n ** 64n - 1n}-${2n ** 64n - 1n}`;
  await queue.seed({ groups: ["g"] });
  for (const key of [keys.stream, keys.dead]) {
    await redis.xadd(key, last, "a", "12345678", "p", "x");
  }
  expect((await drainAll(queue, 1)).rows).toHaveLength(2);
  expect((await drain(queue)).left).toEqual(NOTHING);
});

test("any bytes in the streams: no error, and nothing left", async () => {
  const random = new Random(Date.now() % 1_000_000_000);
  const values = [
    () => random.bytes(random.pick([0, 1, 7, 8, 16, 24, 255, 256])),
    () => Buffer.from(random.pick(["1", "-1", "1e9", "nan", "g", "h", "99999999999"])),
  ];
  for (let i = 0; i < 20; i++) {
    const [queue, other] = [await newMoves(), await newMoves()];
    const { redis, keys } = queue;
    await queue.seed({ groups: ["g", "h"] });
    for (let n = 0; n < 8; n++) {
      const fields = [
        "a",
        "p",
        ...random.some(4, () => random.pick(["a", "t", "n", "g", "d", "?"])),
      ];
      const words = fields.flatMap((field) => [Buffer.from(field), random.pick(values)()]);
      await redis.xadd(random.pick([keys.stream, keys.dead]), "*", ...words);
    }
    const name = DEAD.replace(":1:", ":0:");
    await redis.xreadgroup("GROUP", "g", name, "COUNT", 3, "STREAMS", keys.stream, ">");
    for (let isMore = true; isMore;) {
      const batch = await drain(queue, 3);
      for (const to of [1, INTO]) if (batch.number > 0) await push(other, batch, to);
      await drop(queue, batch);
      isMore = batch.isMore;
      if (!isMore) expect(batch.left).toEqual(NOTHING);
    }
    // Messages that have arrived move on as well.
    while ((await drain(other, 3)).isMore) await other.redis.hdel(other.keys.journal, "rows");
    await redis.unlink(...Object.values(keys), ...Object.values(other.keys));
  }
});

test("a refusal changes nothing: a command, a type, a full memory", async () => {
  const server = await startOwnServer();
  const admin = newRedis(server.url);
  const state = { ...lists, groups: ["g", "h"] };
  const all = "ACL SETUSER limited reset on >secret ~* &* +@all".split(" ");
  const stream = [entryOf(a)];
  const refusals = [
    "-hset",
    "-ltrim",
    "-xdel",
    "-xack",
    "-xpending",
    "-xgroup",
    "-lrange",
    "OOM",
    "WRONGTYPE",
  ];
  for (const refusal of refusals) {
    const queue = await newMoves(server.url);
    await queue.seed(state);
    await queue.seed({ stream });
    let client = admin;
    if (refusal === "WRONGTYPE") await admin.set(queue.keys.journal, "no hash");
    if (refusal === "OOM")
      await admin.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
    if (refusal.startsWith("-")) {
      await admin.call(...(all as [string]), refusal);
      client = newRedis(server.url, { username: "limited", password: "secret" });
    }
    await expect(drain({ ...queue, redis: client }), refusal).rejects.toThrow();
    await admin.config("SET", "maxmemory", "0");
    if (refusal === "WRONGTYPE") await admin.del(queue.keys.journal);
    const { journal, ...rest } = await queue.snapshot();
    expect(rest, refusal).toEqual({ ...state, stream });
    expect(journal?.["rows"], refusal).toBeUndefined();
    expect((await drain(queue)).rows, refusal).toHaveLength(9);
    if (client !== admin) client.disconnect();
  }
});
