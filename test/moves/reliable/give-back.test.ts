import { expect, test } from "vitest";
import { giveBackEntries } from "../../../src/lua/reliable/deliveries.ts";
import { run } from "../../../src/lua/script.ts";
import { newStreams, rowsOf, type Streams } from "../../helpers/streams.ts";

const giving = (
  { redis, keys }: Streams,
  ids: readonly string[],
  { consumer = "c", own = 0, counted = 0, reason = "too late" } = {},
) =>
  run(
    redis,
    giveBackEntries,
    keys,
    { channel: keys.channel, group: "g", consumer, heldCount: 100 },
    rowsOf(ids, { own, counted, reason }),
  );

test("give-back-entries: appends messages to the stream again, for this group only", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add({ p: "a", t: "\xfftrailer" }, { p: "b", n: "2", d: "1" }, "c");
  await queue.deliver("g", "c", 2);
  expect(await giving(queue, ids)).toEqual([true, true, false]);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "c" }, { p: "a", t: "\xfftrailer", g: "g" }, { p: "b", n: "2", g: "g", d: "1" }],
  });
});

test("give-back-entries: counts the attempt if it is told to", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", { p: "b", n: "2" });
  await queue.deliver("g", "c");
  expect(await giving(queue, ids, { counted: 1 })).toEqual([true, true]);
  expect(await queue.snapshot()).toEqual({
    stream: [
      { p: "a", n: "1", g: "g", f: "1: too late" },
      { p: "b", n: "3", g: "g", f: "3: too late" },
    ],
  });
});

test("give-back-entries: a message that is held back waits for the rest of its pause, unless its delivery failed", async () => {
  const queue = await newStreams("g");
  const { redis, keys } = queue;
  const [past, until] = [Date.now() - 1000, Date.now() + 60_000];
  const ids = await queue.add(
    { p: "a", n: "2", g: "g", t: "key", u: String(until) },
    { p: "b", n: "2", g: "g", u: String(past) },
    { p: "c", n: "2", g: "g", u: String(until) },
  );
  await queue.deliver("g", "c");
  expect(await giving(queue, ids.slice(0, 2))).toEqual([true, true]);
  expect(await giving(queue, ids.slice(2), { counted: 1 })).toEqual([true]);
  const after = {
    stream: [
      { p: "b", n: "2", g: "g" },
      { p: "c", n: "3", g: "g", f: "3: too late" },
    ],
    retries: [{ p: "a", n: 2, g: "g", t: "key" }],
    channel: ["0"],
  };
  expect(await queue.snapshot()).toEqual(after);
  expect(await redis.zrange(keys.retries, "0", "-1", "WITHSCORES")).toContain(String(until));
  expect(await giving(queue, ids)).toEqual([false, false, false]);
  expect(await queue.snapshot()).toEqual(after);
});

test("give-back-entries: keeps the old entry for a group that still needs it", async () => {
  const queue = await newStreams("g", "h");
  const ids = await queue.add("a", { p: "b", g: "g" });
  await queue.deliver("g", "c");
  expect(await giving(queue, ids.slice(0, 1))).toEqual([true]);
  expect(await giving(queue, ids.slice(1), { own: 1 })).toEqual([true]);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "a" }, { p: "a", g: "g" }, { p: "b", g: "g" }],
  });
});

test("give-back-entries: skips entries that are not in flight for this consumer", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", "b");
  await queue.deliver("g", "c", 1);
  const before = await queue.snapshot();
  expect(await giving(queue, ids, { consumer: "other" })).toEqual([false, false]);
  expect(await queue.snapshot()).toEqual(before);
  expect(await giving(queue, [...ids, ...ids])).toEqual([true, false, false, false]);
  expect(await giving(queue, ids)).toEqual([false, false]);
  expect(await queue.snapshot()).toEqual({ stream: [{ p: "b" }, { p: "a", g: "g" }] });
});

test("give-back-entries: entries that are gone are only acknowledged, foreign ones are set aside", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", "b");
  ids.push(String(await queue.redis.xadd(queue.keys.stream, "*", "some", "thing")));
  await queue.deliver("g", "c");
  await queue.redis.xdel(queue.keys.stream, ids[0] ?? "");
  expect(await giving(queue, ids)).toEqual([false, true, false]);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "b", g: "g" }],
    unreadable: ["something"],
  });
});

test("give-back-entries: a foreign entry that Redis refuses to set aside stays in flight", async () => {
  const queue = await newStreams("g");
  const { redis, keys } = queue;
  await redis.xadd(keys.stream, "*", "some", "thing");
  await queue.add("a");
  const ids = await queue.deliver("g", "c");
  await redis.set(keys.unreadable, "somebody else's");
  expect(await giving(queue, ids)).toEqual([false, true]);
  await redis.del(keys.unreadable);
  expect(await queue.snapshot()).toEqual({
    stream: [
      { some: "thing", a: "" },
      { p: "a", g: "g" },
    ],
    inFlight: { g: { c: ["foreign"] } },
  });
  expect(await giving(queue, ids)).toEqual([false, false]);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "a", g: "g" }],
    unreadable: ["something"],
  });
});

test("give-back-entries: a malformed number of attempts counts as 0", async () => {
  const queue = await newStreams("g");
  const counts = ["-3", "1.5", "nan", "inf", "1e300", "4294967295", "x", ""];
  const ids = await queue.add(...counts.map((n, i) => ({ p: `m${i}`, n })));
  await queue.deliver("g", "c");
  expect(await giving(queue, ids, { counted: 1 })).toEqual(ids.map(() => true));
  expect(await queue.snapshot()).toEqual({
    stream: counts.map((_, i) => ({ p: `m${i}`, n: "1", g: "g", f: "1: too late" })),
  });
});

test("give-back-entries: a hundred entries keep their order", async () => {
  const queue = await newStreams("g", "h");
  const payloads = Array.from({ length: 100 }, (_, i) => `m${i}`);
  const ids = await queue.add(...payloads);
  await queue.deliver("g", "c");
  await queue.deliver("h", "c");
  expect(await giving(queue, ids)).toEqual(ids.map(() => true));
  expect(await queue.snapshot()).toEqual({
    stream: [...payloads.map((p) => ({ p })), ...payloads.map((p) => ({ p, g: "g" }))],
    inFlight: { h: { c: payloads } },
  });
});

test("give-back-entries: entries before a refusal are finished", async () => {
  const queue = await newStreams("g");
  const { redis, keys } = queue;
  const ids = await queue.add("a", "b", "c");
  await queue.deliver("g", "c");
  // Only the next id is left behind this one.
  await redis.call("XSETID", keys.stream, "18446744073709551615-18446744073709551614");
  await expect(giving(queue, ids)).rejects.toThrow("exhausted");
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "b" }, { p: "c" }, { p: "a", g: "g" }],
    inFlight: { g: { c: ["b", "c"] } },
  });
});

test("give-back-entries: false without a group or a stream; fails for a key of another type", async () => {
  const queue = await newStreams();
  expect(await giving(queue, ["1-1"])).toEqual([false]);
  await queue.addGroup("h");
  expect(await giving(queue, ["1-1"])).toEqual([false]);
  expect(await queue.snapshot()).toEqual({});
  await queue.redis.set(queue.keys.stream, "somebody else's");
  await expect(giving(queue, ["1-1"])).rejects.toThrow(/^WRONGTYPE/);
});
