import { expect, test } from "vitest";
import { HANDED_OUT } from "../../../src/lua/places/in-flight.ts";
import { reclaim } from "../../../src/lua/reliable/reclaim.ts";
import { run } from "../../../src/lua/script.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const reclaiming = (
  { redis, keys }: Streams,
  { consumer = "dead", idle = 0, maxAttempts = Infinity, limit = 100 } = {},
) => {
  const { channel } = keys;
  return run(redis, reclaim, keys, { channel, group: "g", consumer, idle, maxAttempts, limit });
};

const DIED = "its consumer died in delivery";
const once = { n: "1", g: "g", d: "1", f: `1: ${DIED} 1` };

const names = async ({ redis, keys }: Streams) => {
  const rows = (await redis.xinfo("CONSUMERS", keys.stream, "g")) as string[][];
  return rows.map((row) => row[row.indexOf("name") + 1] ?? "").toSorted();
};

test("reclaim: a dead consumer's messages are ready again, and it is removed", async () => {
  const queue = await newStreams("g");
  await queue.add({ p: "a", t: "\xfftrailer" }, { p: "b", n: "2", g: "g", d: "1" });
  await queue.deliver("g", "dead");
  await queue.add("c", "d");
  await queue.deliver("g", "alive", 1);
  expect(await reclaiming(queue)).toEqual({ reclaimed: 2, buried: 0, isLeft: false });
  expect(await queue.snapshot()).toEqual({
    stream: [
      { p: "c" },
      { p: "d" },
      { p: "a", t: "\xfftrailer", n: "1", g: "g", d: "1" },
      { p: "b", n: "3", g: "g", d: "1", f: `3: ${DIED} 3` },
    ],
    inFlight: { g: { alive: ["c"] } },
  });
  expect(await names(queue)).toEqual(["alive"]);
});

test("reclaim: takes nothing from a consumer that is alive or unknown", async () => {
  const queue = await newStreams("g");
  await queue.add("a");
  await queue.deliver("g", "dead");
  const before = await queue.snapshot();
  const nothing = { reclaimed: 0, buried: 0, isLeft: false };
  expect(await reclaiming(queue, { idle: 600_000 })).toEqual(nothing);
  expect(await reclaiming(queue, { consumer: "unknown" })).toEqual(nothing);
  expect(await queue.snapshot()).toEqual(before);
  expect(await names(queue)).toEqual(["dead"]);
});

test("reclaim: buries messages that have had all their deliveries", async () => {
  const queue = await newStreams("g");
  await queue.add("a", { p: "b", n: "1" }, { p: "c", n: "2" }, { p: "d", n: "7", t: "trailer" });
  await queue.deliver("g", "dead");
  expect(await reclaiming(queue, { maxAttempts: 3 })).toEqual({
    reclaimed: 2,
    buried: 2,
    isLeft: false,
  });
  expect(await queue.snapshot()).toEqual({
    stream: [
      { p: "a", ...once },
      { p: "b", n: "2", g: "g", d: "1", f: `2: ${DIED} 2` },
    ],
    dead: [
      { p: "c", n: "3", g: "g", r: `${DIED} 3`, f: `3: ${DIED} 3` },
      { p: "d", t: "trailer", n: "8", g: "g", r: `${DIED} 8`, f: `8: ${DIED} 8` },
    ],
  });
});

test("reclaim: takes a limited number; the consumer stays until it has none left", async () => {
  const queue = await newStreams("g");
  const payloads = Array.from({ length: 150 }, (_, i) => `m${i}`);
  await queue.add(...payloads);
  await queue.deliver("g", "dead");
  expect(await reclaiming(queue)).toEqual({ reclaimed: 100, buried: 0, isLeft: true });
  expect(await names(queue)).toEqual(["dead"]);
  expect(await reclaiming(queue)).toEqual({ reclaimed: 50, buried: 0, isLeft: false });
  expect(await names(queue)).toEqual([]);
  expect(await queue.snapshot()).toEqual({
    stream: payloads.map((p) => ({ p, ...once })),
  });
});

test("reclaim: removes a consumer without entries in flight", async () => {
  const queue = await newStreams("g");
  await queue.redis.xgroup("CREATECONSUMER", queue.keys.stream, "g", "dead");
  expect(await reclaiming(queue)).toEqual({ reclaimed: 0, buried: 0, isLeft: false });
  expect(await names(queue)).toEqual([]);
});

test("reclaim: keeps the old entry for a group that still needs it, and skips entries of other groups", async () => {
  const queue = await newStreams("g", "h");
  await queue.add("a", { p: "b", g: "g" }, { p: "c", g: "h" });
  await queue.deliver("g", "dead");
  expect(await reclaiming(queue)).toEqual({ reclaimed: 2, buried: 0, isLeft: false });
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "a" }, { p: "c", g: "h" }, { p: "a", ...once }, { p: "b", ...once }],
  });
});

test("reclaim: entries that are gone are only acknowledged, foreign ones are set aside", async () => {
  const queue = await newStreams("g");
  const [a = ""] = await queue.add("a", "b");
  await queue.redis.xadd(queue.keys.stream, "*", "some", "thing");
  await queue.deliver("g", "dead");
  await queue.redis.xdel(queue.keys.stream, a);
  expect(await reclaiming(queue)).toEqual({ reclaimed: 1, buried: 0, isLeft: false });
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "b", ...once }],
    unreadable: ["something"],
  });
  expect(await names(queue)).toEqual([]);
});

test("reclaim: a foreign entry that Redis refuses to set aside stays, and the others do not wait for it", async () => {
  const queue = await newStreams("g");
  const { redis, keys } = queue;
  await redis.xadd(keys.stream, "*", "some", "thing");
  await queue.add("a");
  await queue.deliver("g", "dead");
  await redis.set(keys.unreadable, "somebody else's");
  await expect(reclaiming(queue)).rejects.toThrow(/^WRONGTYPE/);
  expect(await names(queue)).toEqual(["dead"]);
  await redis.del(keys.unreadable);
  expect(await queue.snapshot()).toEqual({
    stream: [
      { some: "thing", a: "" },
      { p: "a", ...once },
    ],
    inFlight: { g: { dead: ["foreign"] } },
  });
  expect(await reclaiming(queue)).toEqual({ reclaimed: 0, buried: 0, isLeft: false });
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "a", ...once }],
    unreadable: ["something"],
  });
});

test("reclaim: entries before a refusal are finished, the others stay with their consumer", async () => {
  const queue = await newStreams("g");
  await queue.add("a", { p: "b", n: "2" }, "c");
  await queue.deliver("g", "dead");
  await queue.redis.set(queue.keys.dead, "somebody else's");
  await expect(reclaiming(queue, { maxAttempts: 3 })).rejects.toThrow(/^WRONGTYPE/);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "b", n: "2" }, { p: "c" }, { p: "a", ...once }],
    inFlight: { g: { dead: ["b", "c"] } },
  });
  await queue.redis.del(queue.keys.dead);
  expect(await reclaiming(queue, { maxAttempts: 3 })).toEqual({
    reclaimed: 1,
    buried: 1,
    isLeft: false,
  });
});

test("reclaim: a message that is held back waits for the rest of its pause, and nothing is counted", async () => {
  const queue = await newStreams("g");
  const { redis, keys } = queue;
  const [past, until] = [Date.now() - 1000, Date.now() + 60_000];
  const failed = { n: "2", g: "g", d: "1" };
  const [, , c = ""] = await queue.add(
    { p: "a", ...failed, t: "key", u: String(until) },
    { p: "b", ...failed, u: String(past) },
    { p: "c", ...failed, u: String(past) },
  );
  await queue.deliver("g", "dead");
  // The second one was never handed out. That it was read is no attempt.
  await redis.xclaim(keys.stream, "g", "dead", 0, c, "RETRYCOUNT", HANDED_OUT, "JUSTID");
  expect(await reclaiming(queue, { maxAttempts: 3 })).toEqual({
    reclaimed: 2,
    buried: 1,
    isLeft: false,
  });
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "b", ...failed }],
    retries: [{ p: "a", n: 2, g: "g", t: "key" }],
    dead: [{ p: "c", n: "3", g: "g", r: `${DIED} 3`, f: `3: ${DIED} 3` }],
    channel: ["0"],
  });
  expect(await redis.zrange(keys.retries, "0", "-1", "WITHSCORES")).toContain(String(until));
});

test("reclaim: a message that Redis refuses to make a retry stays with its consumer", async () => {
  const queue = await newStreams("g");
  await queue.add("a", { p: "b", g: "g", u: String(Date.now() + 60_000) });
  await queue.deliver("g", "dead");
  await queue.redis.set(queue.keys.retries, "somebody else's");
  await expect(reclaiming(queue)).rejects.toThrow(/^WRONGTYPE/);
  await queue.redis.del(queue.keys.retries);
  expect(await queue.snapshot()).toMatchObject({ inFlight: { g: { dead: ["b"] } } });
  expect(await reclaiming(queue)).toEqual({ reclaimed: 1, buried: 0, isLeft: false });
  expect(await queue.snapshot()).toMatchObject({
    stream: [{ p: "a", ...once }],
    retries: [{ p: "b", n: 0, g: "g" }],
  });
});

test("reclaim: nothing without a group or a stream; fails for a key of another type", async () => {
  const queue = await newStreams();
  const nothing = { reclaimed: 0, buried: 0, isLeft: false };
  expect(await reclaiming(queue)).toEqual(nothing);
  await queue.addGroup("h");
  expect(await reclaiming(queue)).toEqual(nothing);
  await queue.redis.set(queue.keys.stream, "somebody else's");
  await expect(reclaiming(queue)).rejects.toThrow(/^WRONGTYPE/);
});
