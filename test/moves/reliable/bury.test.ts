import { expect, test } from "vitest";
import { bury } from "../../../src/lua/reliable/deliveries.ts";
import { run } from "../../../src/lua/script.ts";
import { newStreams, rowsOf, type Streams } from "../../helpers/streams.ts";

const burying = (
  { redis, keys }: Streams,
  ids: readonly string[],
  { consumer = "c", own = 0, reason = "rejected" } = {},
) => run(redis, bury, keys, { group: "g", consumer, heldCount: 100 }, rowsOf(ids, { own, reason }));

test("bury: appends dead letters with the number of deliveries, the group and the reason", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add({ p: "a", t: "\xfftrailer" }, { p: "b", n: "2", g: "g", t: "key" });
  await queue.add("c");
  await queue.deliver("g", "c", 2);
  expect(await burying(queue, ids.slice(0, 1))).toEqual([true]);
  expect(await burying(queue, ids.slice(1), { reason: "" })).toEqual([true]);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "c" }],
    dead: [
      { p: "a", t: "\xfftrailer", n: "1", g: "g", r: "rejected" },
      { p: "b", n: "3", g: "g", r: "", t: "key", f: "3: " },
    ],
  });
});

test("bury: keeps the entry for a group that still needs it", async () => {
  const queue = await newStreams("g", "h");
  const ids = await queue.add("a", { p: "b", g: "g" });
  await queue.deliver("g", "c");
  await burying(queue, ids.slice(0, 1));
  await burying(queue, ids.slice(1), { own: 1 });
  const { stream, inFlight, dead } = await queue.snapshot();
  expect({ stream, inFlight }).toEqual({ stream: [{ p: "a" }] });
  expect(dead).toHaveLength(2);
});

test("bury: skips entries that are not in flight for this consumer or gone; foreign ones are set aside", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", "b");
  ids.push(String(await queue.redis.xadd(queue.keys.stream, "*", "some", "thing")));
  await queue.deliver("g", "c");
  const before = await queue.snapshot();
  expect(await burying(queue, ids, { consumer: "other" })).toEqual([false, false, false]);
  expect(await queue.snapshot()).toEqual(before);
  await queue.redis.xdel(queue.keys.stream, ids[0] ?? "");
  expect(await burying(queue, [...ids, ...ids])).toEqual([false, true, false, false, false, false]);
  expect(await burying(queue, ids)).toEqual([false, false, false]);
  expect(await queue.snapshot()).toEqual({
    dead: [{ p: "b", n: "1", g: "g", r: "rejected", f: "1: rejected" }],
    unreadable: ["something"],
  });
});

test("bury: buries a hundred at once", async () => {
  const queue = await newStreams("g", "h");
  const payloads = Array.from({ length: 100 }, (_, i) => `m${i}`);
  const ids = await queue.add(...payloads);
  await queue.deliver("g", "c");
  expect(await burying(queue, ids)).toEqual(ids.map(() => true));
  expect(await queue.snapshot()).toEqual({
    stream: payloads.map((p) => ({ p })),
    dead: payloads.map((p) => ({ p, n: "1", g: "g", r: "rejected", f: "1: rejected" })),
  });
});

test("bury: changes nothing if the key of the dead letters has another type", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", "b");
  await queue.deliver("g", "c");
  await queue.redis.set(queue.keys.dead, "somebody else's");
  await expect(burying(queue, ids)).rejects.toThrow(/^WRONGTYPE/);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "a" }, { p: "b" }],
    inFlight: { g: { c: ["a", "b"] } },
  });
});

test("bury: entries before a refusal are finished, the others can be buried later", async () => {
  const queue = await newStreams("g");
  const { redis, keys } = queue;
  const ids = await queue.add("a", "b", "c");
  await queue.deliver("g", "c");
  // One id is left in the stream of dead letters.
  await redis.xadd(keys.dead, "18446744073709551615-18446744073709551614", "p", "old");
  await expect(burying(queue, ids)).rejects.toThrow("exhausted");
  const { stream, inFlight, dead } = await queue.snapshot();
  expect({ stream, inFlight }).toEqual({
    stream: [{ p: "b" }, { p: "c" }],
    inFlight: { g: { c: ["b", "c"] } },
  });
  expect(dead?.map(({ p }) => p)).toEqual(["old", "a"]);
  await redis.del(keys.dead);
  expect(await burying(queue, ids)).toEqual([false, true, true]);
});

test("bury: false without a group or a stream; fails for a key of another type", async () => {
  const queue = await newStreams();
  expect(await burying(queue, ["1-1"])).toEqual([false]);
  await queue.addGroup("h");
  expect(await burying(queue, ["1-1"])).toEqual([false]);
  expect(await queue.snapshot()).toEqual({});
  await queue.redis.set(queue.keys.stream, "somebody else's");
  await expect(burying(queue, ["1-1"])).rejects.toThrow(/^WRONGTYPE/);
});
