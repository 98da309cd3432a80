import { expect, test } from "vitest";
import type { Batch, Kind, BatchRow } from "../../../src/lua/fragments/journal.ts";
import { lastArrived, pushIn } from "../../../src/lua/partitions/push-in.ts";
import { run } from "../../../src/lua/script.ts";
import {
  bytes,
  indexEntry,
  message,
  newMoves,
  packRetry,
  retryName,
  type Message,
  type QueueState,
} from "../../helpers/moves.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { push } from "../../helpers/partitions.ts";
import { newRedis } from "../../helpers/redis.ts";

const FAR = 5_000_000_000_000;
const a = message("a", FAR, "key a");
const b = message("b", FAR + 1);
const c = message("c", FAR + 2);
const behindA = indexEntry(a, 2, 7).slice(24);

const row = (kind: Kind, score: number | string, name: string, value: string): BatchRow => ({
  to: 1,
  kind,
  score: String(score),
  name: bytes(name),
  value: bytes(value),
});
const travels = ({ deadline, member }: Message, behind = ""): BatchRow =>
  row("message", deadline, member, behind);
const retryOf = (one: Message): BatchRow =>
  row("retry", one.deadline, retryName(one, "g"), packRetry(one, 3));
const entryOf = (one: Message, group: string, score = ""): BatchRow =>
  row("entry", score, retryName(one, group), packRetry(one, 2));
/** A dead letter with these fields: an array of MessagePack. */
const letter = (...fields: string[]): BatchRow => {
  const texts = fields.map((text) => String.fromCodePoint(0xa0 + text.length) + text);
  return row("dead", "", "", String.fromCodePoint(0x90 + fields.length) + texts.join(""));
};
const batch = (number: number, ...rows: BatchRow[]): Batch => ({ number, rows, isOld: false });

const arrived: QueueState = {
  timeouts: [a.delayed, b.delayed],
  order: [b.address, a.address],
  businessKeys: { [a.key]: indexEntry(a, 2, 7) },
  channel: [String(FAR)],
  arrivals: { 0: "5" },
};

test("a schedule: with when to plan it next, and planners are woken; once", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  await push(queue, batch(1, travels(a)));
  expect(await push(queue, batch(5, row("schedule", FAR, "nightly", "record")))).toBe(true);
  const { channel } = await queue.snapshot();
  expect(channel).toEqual([String(FAR), "0"]);
  expect(await redis.hgetall(keys.schedules)).toEqual({ nightly: "record" });
  expect(await redis.zrange(keys.planning, "0", "-1", "WITHSCORES")).toEqual([
    "nightly",
    String(FAR),
  ]);
  expect(await push(queue, batch(5, row("schedule", FAR, "nightly", "record")))).toBe(false);
});

test("messages: in the ZSET, the insertion order and the index, and a new head is published; once", async () => {
  const queue = await newMoves();
  const both = [travels(b), travels(a, behindA)];
  expect(await push(queue, batch(5, ...both))).toBe(true);
  expect(await queue.snapshot()).toEqual(arrived);
  await queue.redis.zrem(queue.keys.timeouts, bytes(a.member));
  expect(await push(queue, batch(5, ...both))).toBe(false);
  expect(await push(queue, batch(4, ...both))).toBe(false);
  expect(await queue.snapshot()).toEqual({ ...arrived, timeouts: [b.delayed] });
  // The next batch arrives behind a head, and another one from another partition. A message that is already here stays
  // as it is.
  expect(await push(queue, batch(6, { ...travels(b), score: "7" }, travels(c)))).toBe(true);
  const { redis, keys } = queue;
  const { channel } = keys;
  expect(await run(redis, pushIn, keys, { channel, source: 2, number: 4 }, [travels(a)])).toBe(
    true,
  );
  expect(await queue.snapshot()).toEqual({
    ...arrived,
    timeouts: [a.delayed, b.delayed, c.delayed],
    channel: [String(FAR), String(FAR)],
    order: [b.address, a.address, c.address, a.address],
    arrivals: { 0: "6", 2: "4" },
  });
});

test("a key of another message stays; a dead key does not", async () => {
  const queue = await newMoves();
  const other = message("o", FAR, a.key);
  const seeded: QueueState = {
    timeouts: [other.delayed],
    businessKeys: { [a.key]: indexEntry(other) },
  };
  await queue.seed(seeded);
  await push(queue, batch(1, travels(a, behindA)));
  expect(await queue.snapshot()).toMatchObject({
    timeouts: [a.delayed, other.delayed],
    businessKeys: { [a.key]: indexEntry(other) },
  });
  await queue.redis.zrem(queue.keys.timeouts, bytes(a.member), bytes(other.member));
  await push(queue, batch(2, travels(a, behindA)));
  expect(await queue.snapshot()).toMatchObject({ businessKeys: { [a.key]: indexEntry(a, 2, 7) } });
});

test("every kind of row goes where it belongs", async () => {
  const queue = await newMoves();
  await queue.seed({ groups: ["g"] });
  const rows = [
    retryOf(b),
    retryOf(a),
    row("ready", "", "", "r1"),
    row("ready", "", "", "r2"),
    row("quarantine", "", "", "q"),
    row("unreadable", "", "", "u"),
    entryOf(a, "g"),
    entryOf(b, "new", "1"),
    entryOf(b, ""),
    letter("a", "x", "p", "y"),
  ];
  await push(queue, batch(1, ...rows));
  const entry = { a: b.address, p: "b", n: "2" };
  expect(await queue.snapshot()).toEqual({
    retries: [
      [retryName(a, "g"), FAR],
      [retryName(b, "g"), FAR + 1],
    ],
    retrying: { [retryName(a, "g")]: packRetry(a, 3), [retryName(b, "g")]: packRetry(b, 3) },
    businessKeys: { [a.key]: indexEntry(a) },
    ready: ["r1", "r2"],
    quarantine: ["q"],
    unreadable: ["u"],
    groups: ["g", "new"],
    stream: [
      { a: a.address, p: "a", t: "key a", n: "2", g: "g" },
      { ...entry, g: "new", d: "1" },
      entry,
    ],
    dead: [[expect.anything(), "a", "x", "p", "y"]],
    arrivals: { 0: "1" },
    channel: [String(FAR)],
  });
});

test("an entry keeps its slot, and takes it in its lane here", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const inLane = message("b", FAR, "", { lane: "x" });
  const trailer = inLane.member.slice(26);
  const entry = (score: string) =>
    row("entry", score, retryName(inLane, ""), packRetry({ payload: "b", key: trailer }, 2));
  await redis.hset(keys.flow, { kind: "lanes", slots: "1" });
  await push(queue, batch(1, entry("/2"), entry("1:1900000000000/1"), entry("1:1900000000000")));
  const fields = { a: inLane.address, p: "b", t: trailer, n: "2" };
  const heldBack = { ...fields, d: "1", u: "1900000000000" };
  const { stream } = await queue.snapshot();
  expect(stream).toEqual([{ ...fields, l: "2" }, { ...heldBack, l: "1" }, heldBack]);
  const [first] = await redis.xrange(keys.stream, "-", "+");
  expect(await redis.zrange(keys.hands, "0", "-1")).toEqual([`\u0001x${first?.[0]}`]);
});

test("a stream and a group that are missing are made", async () => {
  const queue = await newMoves();
  await push(queue, batch(1, entryOf(b, "g")));
  expect(await queue.snapshot()).toMatchObject({ groups: ["g"], stream: [{ g: "g" }] });
});

test("meaningless bytes are kept, and raise no error", async () => {
  const queue = await newMoves();
  await queue.seed({ arrivals: { 0: "no number" } });
  const { name } = retryOf(a);
  const rows: BatchRow[] = [
    row("message", 5, "what is this", "v"),
    { ...travels(a), score: "nan" },
    { ...travels(b), score: "" },
    { ...retryOf(a), name: bytes("alone") },
    { ...retryOf(b), name, value: bytes("broken") },
    { ...entryOf(a, "g"), value: bytes("also") },
    row("dead", "", "", "\u0093abc"),
    row("dead", "", "", ""),
    letter("one"),
  ];
  await push(queue, batch(1, ...rows));
  const { unreadable, ...rest } = await queue.snapshot();
  expect(unreadable).toEqual([
    "what is this",
    a.member,
    b.member,
    packRetry(a, 3),
    "broken",
    "also",
    "\u0093abc",
    "",
    "\u0091\u00a3one",
  ]);
  expect(rest).toEqual({ arrivals: { 0: "1" } });
});

test("a batch that is refused halfway is undone, and can be sent again", async () => {
  const server = await startOwnServer();
  const admin = newRedis(server.url);
  const seeded: QueueState = {
    groups: ["g"],
    ready: ["r0"],
    businessKeys: { [a.key]: indexEntry(b) },
    arrivals: { 0: "1" },
  };
  const rows = [
    travels(a, behindA),
    retryOf(b),
    row("ready", "", "", "r1"),
    entryOf(a, "g"),
    letter("a", "x"),
  ];
  const all = "ACL SETUSER limited reset on >secret ~* &* +@all".split(" ");
  const refusals = [
    "-zadd",
    "-rpush",
    "-xadd",
    "-publish",
    "-hset",
    "-hget",
    "-hexists",
    "-zrangebyscore",
    "-xgroup",
  ];
  for (const refusal of [
    ...refusals,
    "WRONGTYPE dead",
    "WRONGTYPE arrivals",
    "WRONGTYPE businessKeys",
    "OOM",
  ]) {
    const queue = await newMoves(server.url);
    await queue.seed(seeded);
    let client = admin;
    const [what, key] = refusal.split(" ") as [string, "dead" | "arrivals" | "businessKeys"];
    if (what === "WRONGTYPE") {
      await admin.del(queue.keys[key]);
      await admin.set(queue.keys[key], "another type");
    } else if (what === "OOM") {
      await admin.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
    } else {
      await admin.call(...(all as [string]), what);
      client = newRedis(server.url, { username: "limited", password: "secret" });
    }
    await expect(push({ ...queue, redis: client }, batch(2, ...rows)), refusal).rejects.toThrow();
    await admin.config("SET", "maxmemory", "0");
    if (key) await admin.del(queue.keys[key]);
    const { channel: _heard, ...after } = await queue.snapshot();
    const others = Object.entries(seeded).filter(([name]) => name !== key);
    expect(after, refusal).toEqual(Object.fromEntries(others));
    expect(await push(queue, batch(2, ...rows)), refusal).toBe(true);
    expect(await queue.snapshot(), refusal).toMatchObject({
      timeouts: [a.delayed],
      ready: ["r0", "r1"],
      businessKeys: { [a.key]: indexEntry(a, 2, 7) },
      stream: [{ a: a.address }],
      arrivals: { 0: "2" },
    });
    if (client !== admin) client.disconnect();
  }
});

test("the number of the last batch of one source; 0 if none has arrived", async () => {
  const { redis, keys } = await newMoves();
  await redis.hset(keys.arrivals, "3", "17");
  expect(await run(redis, lastArrived, keys, { source: "3" })).toBe(17);
  expect(await run(redis, lastArrived, keys, { source: "4" })).toBe(0);
});
