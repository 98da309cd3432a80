import { expect, test } from "vitest";
import type { Batch } from "../../../src/lua/fragments/journal.ts";
import { pullOut, pullOutPage, type PulledPage } from "../../../src/lua/partitions/pull-out.ts";
import { run } from "../../../src/lua/script.ts";
import { packAddress, packMember } from "../../../src/queue/message/message.ts";
import type { RedisClient } from "../../../src/redis/client.ts";
import {
  bytes,
  indexEntry,
  message,
  newMoves,
  packRetry,
  retryName,
  waitingFor,
  type Message,
  type Moves,
  type QueueState,
} from "../../helpers/moves.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { allTo, drop, push, rowsOf } from "../../helpers/partitions.ts";
import { newRedis } from "../../helpers/redis.ts";

const FAR = 5_000_000_000_000;
const a = message("a", FAR, "key a");
const b = message("b", FAR + 1);
const [retryA, retryB] = [retryName(a, "g"), retryName(b, "g")];

/** The partition of each message follows from its payload: `a` and `b` differ. */
const ONLY_A = allTo(0).fill(1, 0x61 + (0x61 % 4) * 256, 0x62 + (0x61 % 4) * 256);

type Pull = (redis: RedisClient, keys: Moves["keys"], buckets?: Buffer) => Promise<Batch>;
type Row = Readonly<Record<"id" | "key" | "member", Buffer | string>>;
const NOBODY: Row = { id: "", key: "", member: "" };
const byRows =
  (rows: readonly Row[]): Pull =>
  (redis, keys, buckets = allTo(1)) =>
    run(redis, pullOut, keys, { own: 0, buckets }, rows);
const byKey = (...wanted: string[]) => byRows(wanted.map((key) => ({ ...NOBODY, key })));
const byId = (...wanted: { address: string }[]) =>
  byRows(wanted.map(({ address }) => ({ ...NOBODY, id: bytes(address) })));
const byMember = (...wanted: { member: string }[]) =>
  byRows(wanted.map(({ member }) => ({ ...NOBODY, member: bytes(member) })));
const byPage =
  (cursor: Buffer = Buffer.alloc(0), limit = 100, own = 0) =>
  (redis: RedisClient, keys: Moves["keys"], buckets = allTo(1)): Promise<PulledPage> =>
    run(redis, pullOutPage, keys, { own, buckets, cursor, limit, maxBytes: 1_000_000 });

const before: QueueState = {
  timeouts: [a.delayed, b.delayed],
  order: [a.address, b.address],
  businessKeys: { [a.key]: indexEntry(a, 2, 7) },
};
const rowA = {
  to: 1,
  kind: "message",
  score: String(FAR),
  name: a.member,
  value: indexEntry(a, 2, 7).slice(24),
};
const rowB = { to: 1, kind: "message", score: String(FAR + 1), name: b.member, value: "" };

test.each<[string, Pull]>([
  ["by key", byKey("key a", "another", "key a")],
  ["by id", byId(a, a, message("z", FAR))],
  ["by member", byMember(a, a, message("z", FAR))],
  ["by page", (redis, keys) => byPage()(redis, keys, ONLY_A)],
])(
  "%s: leaves the ZSET and the index, and is in the journal until it is dropped",
  async (_, pull) => {
    const queue = await newMoves();
    await queue.seed(before);
    const batch = await pull(queue.redis, queue.keys);
    expect(rowsOf(batch)).toEqual([rowA]);
    expect(batch.isOld).toBe(false);
    const { journal, ...rest } = await queue.snapshot();
    expect(rest).toEqual({ timeouts: [b.delayed], order: before.order });
    expect(journal).toEqual({
      last: String(batch.number),
      rows: expect.stringContaining(a.member),
    });

    // Other callers get the same batch meanwhile, and nothing else leaves.
    const { number, rows } = batch;
    const old = { number, rows, isOld: true };
    expect(await byKey("key a")(queue.redis, queue.keys)).toEqual(old);
    // A page also returns the reader's unchanged position.
    const cursor = Buffer.from("cursor");
    expect(await byPage(cursor)(queue.redis, queue.keys)).toEqual({ ...old, next: cursor });
    expect(await drop(queue, { ...batch, number: batch.number - 1 })).toBe(false);
    expect(await queue.snapshot()).toEqual({ ...rest, journal });
    expect(await drop(queue, batch)).toBe(true);
    expect(await drop(queue, batch)).toBe(false);
    expect(await queue.snapshot()).toEqual({ ...rest, journal: { last: String(batch.number) } });
    const next = await byPage()(queue.redis, queue.keys);
    expect(next.number).toBeGreaterThan(batch.number);
  },
);

test("messages that belong here stay, and so does the journal", async () => {
  const queue = await newMoves();
  await queue.seed(before);
  const nothing = { number: 0, rows: [], isOld: false };
  expect(await byKey("key a")(queue.redis, queue.keys, allTo(0))).toEqual(nothing);
  expect(await byId(a, b)(queue.redis, queue.keys, allTo(0))).toEqual(nothing);
  expect(await byMember(a, b)(queue.redis, queue.keys, allTo(0))).toEqual(nothing);
  const page = await byPage()(queue.redis, queue.keys, allTo(0));
  expect(page).toEqual({ ...nothing, next: undefined });
  expect(await queue.snapshot()).toEqual(before);
  // A partition that keeps nothing.
  expect(rowsOf(await byPage(undefined, 100, -1)(queue.redis, queue.keys, allTo(0)))).toHaveLength(
    2,
  );
});

test("more at once than Lua's stack holds, and by ids of Java's", async () => {
  const queue = await newMoves();
  const ids = Array.from({ length: 9000 }, (_, i) => Buffer.from(String(i).padStart(8, "0")));
  const java = ids.map((id) => packMember(id, Buffer.from("x")));
  await queue.redis.zadd(queue.keys.timeouts, ...java.flatMap((member) => [5, member]));
  const wanted = ids.map((id) => ({ address: packAddress(5, id).toString("latin1") }));
  const batch = await byId(...wanted)(queue.redis, queue.keys);
  expect(batch.rows).toHaveLength(9000);
  expect(Object.keys(await queue.snapshot())).toEqual(["journal"]);
  const other = await newMoves();
  await push(other, batch);
  // Their elements in the insertion order are members.
  expect(await other.redis.lrange(other.keys.order, 0, -1)).toEqual(java.map(String));
  expect(await other.redis.zcard(other.keys.timeouts)).toBe(9000);
});

const retrying: QueueState = {
  groups: ["g"],
  retries: [
    [retryA, FAR],
    [retryB, FAR],
  ],
  retrying: { [retryA]: packRetry(a, 3), [retryB]: packRetry(b, 1) },
};
const travellingRetry = {
  to: 1,
  kind: "retry",
  score: String(FAR),
  name: retryA,
  value: packRetry(a, 3),
};

test("a retry leaves by its message's id", async () => {
  const queue = await newMoves();
  await queue.seed(retrying);
  expect(rowsOf(await byId(a)(queue.redis, queue.keys))).toEqual([travellingRetry]);
  expect(await queue.snapshot()).toMatchObject({
    retries: [[retryB, FAR]],
    retrying: { [retryB]: packRetry(b, 1) },
  });
});

test("pages cover the retries after the messages", async () => {
  const queue = await newMoves();
  await queue.seed({ ...before, ...retrying });
  const kinds: string[] = [];
  let cursor: Buffer | undefined = Buffer.alloc(0);
  for (let page = 0; cursor; page++) {
    expect(page).toBeLessThan(5);
    const pulled: PulledPage = await byPage(cursor, 1)(queue.redis, queue.keys);
    kinds.push(...rowsOf(pulled).map(({ kind, name }) => `${kind} ${name === retryB ? "b" : ""}`));
    cursor = pulled.next;
    await drop(queue, pulled);
  }
  expect(kinds).toEqual(["message ", "message ", "retry b", "retry "]);
  const { order, groups } = { ...before, ...retrying };
  expect(await queue.snapshot()).toEqual({ order, groups, journal: expect.anything() });
});

const [waitingA, waitingB] = [waitingFor(a, ""), waitingFor(b, "")];
const inRoom: QueueState = {
  flow: { kind: "lanes" },
  room: { [waitingA.id]: waitingA.kept, [waitingB.id]: waitingB.kept },
  turns: [
    [waitingA.turn, 0],
    [waitingB.turn, 0],
  ],
  lanes: [["", 0]],
  businessKeys: { [a.key]: indexEntry(a, 2, 7) },
};

test.each<[string, Pull]>([
  ["by key", byKey("key a")],
  ["by id", byId(a, a)],
  ["by member", byMember(a, a)],
  ["by page", (redis, keys) => byPage(Buffer.from("t"))(redis, keys, ONLY_A)],
])("%s: what waits for its turn leaves as a delayed message", async (_, pull) => {
  const queue = await newMoves();
  await queue.seed(inRoom);
  const batch = await pull(queue.redis, queue.keys);
  expect(rowsOf(batch)).toEqual([rowA]);
  const { journal, ...rest } = await queue.snapshot();
  const { flow, lanes } = inRoom;
  const left = { room: { [waitingB.id]: waitingB.kept }, turns: [[waitingB.turn, 0]] };
  expect(rest).toEqual({ flow, lanes, ...left });
  expect(journal?.["rows"]).toContain(a.member);
  await drop(queue, batch);
  await drop(queue, await byPage(Buffer.from("t"))(queue.redis, queue.keys));
  // With the last one everything goes that was there for it.
  expect(Object.keys(await queue.snapshot())).toEqual(["journal", "flow"]);
});

test("a message that waits leaves only with the deadline and the bytes that it was asked for by", async () => {
  const queue = await newMoves();
  await queue.seed(inRoom);
  const nothing = { number: 0, rows: [], isOld: false };
  expect(await byId(message("a", FAR + 7))(queue.redis, queue.keys)).toEqual(nothing);
  const other = message("a", FAR, "another key");
  expect(await byMember(other)(queue.redis, queue.keys)).toEqual(nothing);
  expect(await queue.snapshot()).toEqual(inRoom);
});

test("a retry that waits for its turn leaves with the instant at which it was due", async () => {
  const queue = await newMoves();
  await queue.seed({ groups: ["g"] });
  const waits: QueueState = {
    retries: [[retryA, 9e15 + FAR]],
    retrying: { [retryA]: packRetry(a, 3) },
  };
  for (const pull of [byId(a), byPage(Buffer.from("r")), byPage(Buffer.from("t"))]) {
    await queue.seed({ ...waits, turns: [[`\u0001x\x80\x18${a.address}g`, 0]] });
    const batch = await pull(queue.redis, queue.keys);
    expect(rowsOf(batch)).toEqual([travellingRetry]);
    await drop(queue, batch);
    expect((await queue.snapshot()).retries).toBeUndefined();
  }
});

test.each([1, 3, 100])(
  "pages of %i cover what waits, whatever begins to wait meanwhile",
  async (limit) => {
    const queue = await newMoves();
    const { redis, keys } = queue;
    const letters = Array.from("abcdefghij");
    const all = letters.map((letter, i) => message(letter, FAR + i));
    const [moved, stays] = [all.slice(0, 5), all.slice(5)];
    const buckets = allTo(0);
    for (const { id } of moved) {
      const [high = 0, low = 0] = bytes(id.slice(-2));
      buckets[(high % 4) * 256 + low] = 1;
    }
    await queue.seed({ timeouts: all.map(({ delayed }) => delayed) });
    // As `admit` does.
    const admitOne = async (one: Message) => {
      if ((await redis.zrem(keys.timeouts, bytes(one.member))) === 0) return;
      const { id, kept, turn } = waitingFor(one, "");
      await redis.hset(keys.room, bytes(id), bytes(kept));
      await redis.zadd(keys.turns, 0, bytes(turn));
    };
    for (const one of [...moved.slice(2, 4), ...stays.slice(1)]) await admitOne(one);
    const gone: string[] = [];
    let cursor: Buffer | undefined = Buffer.alloc(0);
    for (let page = 0; cursor; page++) {
      expect(page).toBeLessThan(30);
      const pulled: PulledPage = await byPage(cursor, limit)(redis, keys, buckets);
      gone.push(...rowsOf(pulled).map(({ name }) => name));
      cursor = pulled.next;
      await drop(queue, pulled);
      // The one that would be looked at last.
      if (page === 0) await admitOne(moved[0] as Message);
    }
    expect(gone.toSorted()).toEqual(moved.map(({ member }) => member).toSorted());
    const left = await queue.snapshot();
    expect(left.timeouts).toEqual([stays[0]?.delayed]);
    expect(Object.keys(left.room ?? {})).toHaveLength(4);
    expect(left.turns).toHaveLength(4);
  },
);

test("a retry that begins to wait behind the page is not left behind", async () => {
  const queue = await newMoves();
  await queue.seed(retrying);
  const { redis, keys } = queue;
  const first = await byPage(Buffer.from("r"), 1)(redis, keys);
  expect(rowsOf(first)).toMatchObject([{ name: retryB }]);
  await drop(queue, first);
  await redis.zadd(keys.retries, 9e15 + FAR, bytes(retryA));
  await redis.zadd(keys.turns, 0, bytes(`\u0001x\x80\x18${a.address}g`));
  let cursor = first.next;
  const rows = [];
  while (cursor !== undefined) {
    const page = await byPage(cursor, 1)(redis, keys);
    rows.push(...rowsOf(page));
    await drop(queue, page);
    cursor = page.next;
  }
  expect(rows).toEqual([travellingRetry]);
});

test.each([1, 3])(
  "no page of %i skips or stays, among equal deadlines and equal beginnings",
  async (limit) => {
    const queue = await newMoves();
    const { redis, keys } = queue;
    const twins = Array.from({ length: 40 }, (_, i) => `${"x".repeat(40)}${i % 7}${i}`);
    for (const member of twins) await redis.zadd(keys.timeouts, 5, member);
    // Members of this partition stay in the ZSET. The others that a page reads leave for the `unreadable` of partition
    // 1.
    const buckets = allTo(0);
    for (const member of twins.slice(0, 20)) {
      const [high = 0, low = 0] = bytes(member.slice(-2));
      buckets[(high % 4) * 256 + low] = 1;
    }
    let cursor: Buffer | undefined = Buffer.alloc(0);
    const gone: string[] = [];
    for (let page = 0; cursor; page++) {
      const pulled: PulledPage = await byPage(cursor, limit)(redis, keys, buckets);
      gone.push(...rowsOf(pulled).map(({ value }) => value));
      cursor = pulled.next;
      await drop(queue, pulled);
      // Other members come and go.
      await redis.zadd(keys.timeouts, 5, `${"x".repeat(40)}9${page}`);
      await redis.zrem(keys.timeouts, `${"x".repeat(40)}9${page - 2}`);
      expect(page).toBeLessThan(100);
    }
    const leaving = twins.filter((member) => {
      const [high = 0, low = 0] = bytes(member.slice(-2));
      return buckets[(high % 4) * 256 + low] === 1;
    });
    expect(leaving.length).toBeGreaterThan(10);
    expect(gone.toSorted()).toEqual(expect.arrayContaining(leaving.toSorted()));
  },
);

test("a message leaves by its member whatever its deadline is now", async () => {
  const queue = await newMoves();
  for (const score of [0, 0.1, FAR + 7]) {
    await queue.redis.del(queue.keys.journal);
    await queue.seed({ ...before, timeouts: [[a.member, score], b.delayed] });
    const batch = await byMember(a)(queue.redis, queue.keys);
    // The entry of the index points to the message, with any deadline.
    expect(rowsOf(batch).map((row) => ({ ...row, score: Number(row.score) }))).toEqual([
      { ...rowA, score },
    ]);
    await queue.redis.del(...Object.values(queue.keys));
  }
});

test("members that nobody can unpack are pulled out, too", async () => {
  const queue = await newMoves();
  await queue.seed({
    timeouts: [["what is this", 5]],
    retries: [
      ["alone", 6],
      [retryA, 7],
    ],
    retrying: { [retryA]: "broken" },
  });
  const first = await byPage()(queue.redis, queue.keys);
  const unreadable = { to: 1, kind: "unreadable", score: "", name: "" };
  expect(rowsOf(first)).toEqual([{ ...unreadable, value: "what is this" }]);
  await drop(queue, first);
  expect(rowsOf(await byPage(first.next)(queue.redis, queue.keys))).toEqual([
    { ...unreadable, value: "broken" },
    { ...unreadable, value: "alone" },
  ]);
  expect(Object.keys(await queue.snapshot())).toEqual(["journal"]);
});

test.each<[string, Record<string, string>, unknown[]]>([
  ["bytes", { last: "7", rows: "what is this" }, [{ kind: "unreadable", value: "what is this" }]],
  ["a number", { last: "no number", rows: "\u0001" }, [{ kind: "unreadable", value: "\u0001" }]],
  ["a length", { last: "7", rows: "\0\0\u0009\u0009\0\0\0\0\0\0\0a" }, [{ kind: "unreadable" }]],
])("a journal with broken %s: can be finished", async (_, journal, rows) => {
  const queue = await newMoves();
  await queue.seed({ ...before, journal });
  const batch = await byKey("key a")(queue.redis, queue.keys);
  expect(batch.isOld).toBe(true);
  expect(rowsOf(batch)).toMatchObject(rows);
  const other = await newMoves();
  expect(await push(other, batch, 0)).toBe(true);
  expect((await other.snapshot()).unreadable).toHaveLength(1);
  expect(await drop(queue, batch)).toBe(true);
  expect(rowsOf(await byKey("key a")(queue.redis, queue.keys))).toEqual([rowA]);
});

test("a lost batch number is never used again", async () => {
  const queue = await newMoves();
  await queue.seed(before);
  const first = await byKey("key a")(queue.redis, queue.keys);
  await queue.redis.del(queue.keys.journal);
  const second = await byPage()(queue.redis, queue.keys);
  expect(rowsOf(second)).toEqual([rowB]);
  expect(second.number).toBeGreaterThan(first.number);
});

test("a refusal changes nothing: a command, a type, a full memory", async () => {
  const server = await startOwnServer();
  const admin = newRedis(server.url);
  const state = { ...before, ...retrying };
  const stateOf = (name: string, command: string) =>
    name === "what waits" ? inRoom : command === "hdel" ? retrying : state;
  const cases: [string, Pull, string][] = [
    ["by key", byKey("key a"), "zrem"],
    ["by key", byKey("key a"), "hmget"],
    ["by key", byKey("key a"), "hset"],
    ["by member", byMember(a), "zscore"],
    ["by member", byMember(a), "zrem"],
    ["by id", byId(a, message("b", FAR)), "hdel"],
    ["by retries", byPage(Buffer.from("r")), "hdel"],
    ["what waits", byPage(Buffer.from("t")), "hmget"],
    ["what waits", byPage(Buffer.from("t")), "exists"],
  ];
  const all = "ACL SETUSER limited reset on >secret ~* &* +@all".split(" ");
  for (const [name, pull, command] of cases) {
    const queue = await newMoves(server.url);
    // The retry of `b` is found by id only if `b` is not delayed.
    await queue.seed(stateOf(name, command));
    await admin.call(...(all as [string]), `-${command}`);
    const limited = newRedis(server.url, { username: "limited", password: "secret" });
    await expect(pull(limited, queue.keys), `${name} without ${command}`).rejects.toThrow();
    limited.disconnect();
    const { journal, ...rest } = await queue.snapshot();
    expect(rest).toEqual(stateOf(name, command));
    expect(journal?.["rows"]).toBeUndefined();
  }

  const queue = await newMoves(server.url);
  await queue.seed(before);
  await queue.redis.set(queue.keys.journal, "no hash");
  await expect(byKey("key a")(queue.redis, queue.keys)).rejects.toThrow("WRONGTYPE");
  await queue.redis.del(queue.keys.journal);
  await queue.redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  await expect(byKey("key a")(queue.redis, queue.keys)).rejects.toThrow("OOM");
  await expect(byPage()(queue.redis, queue.keys)).rejects.toThrow("OOM");
  await queue.redis.config("SET", "maxmemory", "0");
  expect(await queue.snapshot()).toEqual(before);
  // A batch can be dropped although memory is full.
  const batch = await byKey("key a")(queue.redis, queue.keys);
  await queue.redis.config("SET", "maxmemory", "1");
  expect(await drop(queue, batch)).toBe(true);
});
