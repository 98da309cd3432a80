import { expect, test } from "vitest";
import { retryLater } from "../../../src/lua/reliable/deliveries.ts";
import { run } from "../../../src/lua/script.ts";
import { message } from "../../helpers/moves.ts";
import { newStreams, rowsOf, type Streams } from "../../helpers/streams.ts";

const retrying = (
  { redis, keys }: Streams,
  ids: readonly string[],
  { group = "g", consumer = "c", own = 0, delay = 60_000, counted = 1, reason = "busy" } = {},
) =>
  run(
    redis,
    retryLater,
    keys,
    { channel: keys.channel, group, consumer, heldCount: 100 },
    rowsOf(ids, { own, delay, counted, reason }),
  );

const dues = async ({ redis, keys }: Streams): Promise<number[]> => {
  const found = await redis.zrange(keys.retries, "0", "-1", "WITHSCORES");
  return found.filter((_, i) => i % 2 === 1).map(Number);
};

test("retry-later: a message waits with everything that it carries, and is not in flight any more", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add({ p: "a", t: "\xfftrailer" }, { p: "b", n: "2", g: "g", t: "key" });
  await queue.add("c");
  await queue.deliver("g", "c", 2);
  const { serverTime, settled } = await retrying(queue, ids);
  expect(settled).toEqual([true, true]);
  expect(Math.abs(serverTime - Date.now())).toBeLessThan(10_000);
  const due = Math.ceil(serverTime + 60_000);
  expect(await dues(queue)).toEqual([due, due]);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "c" }],
    retries: [
      { p: "a", n: 1, g: "g", t: "\xfftrailer" },
      { p: "b", n: 3, g: "g", t: "key", f: "3: busy" },
    ],
    channel: [String(due)],
  });
});

test("retry-later: without counting the delivery; delays of 0 and with fractions", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", { p: "b", n: "2" });
  await queue.deliver("g", "c");
  const { serverTime } = await retrying(queue, ids.slice(0, 1), { delay: 0, counted: 0 });
  const later = await retrying(queue, ids.slice(1), { delay: 0.5, counted: 0 });
  expect(await dues(queue)).toEqual([Math.floor(serverTime), Math.ceil(later.serverTime + 0.5)]);
  const { retries, stream, inFlight } = await queue.snapshot();
  expect(retries?.map(({ p, n, f }) => [p, n, f])).toEqual([
    ["a", 0, undefined],
    ["b", 2, undefined],
  ]);
  expect({ stream, inFlight }).toEqual({});
});

test.each([
  { what: "the first message of all", heard: true },
  { what: "a new head of the retries", others: 70_000, heard: true },
  { what: "behind another retry", others: 50_000, heard: false },
  { what: "before all delayed messages", delayed: 70_000, heard: true },
  { what: "behind a delayed message", delayed: 50_000, heard: false },
  { what: "before both", others: 70_000, delayed: 65_000, heard: true },
])("retry-later: published? $what: $heard", async ({ others, delayed, heard }) => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", "b", "c");
  await queue.deliver("g", "c");
  if (others !== undefined) {
    await queue.redis.zadd(queue.keys.retries, Date.now() + others, "\0another");
    await queue.redis.hset(queue.keys.retrying, "\0another", "?");
  }
  if (delayed !== undefined) {
    await queue.seed({ timeouts: [message("x", Date.now() + delayed).delayed] });
  }
  // Only the earliest counts.
  const rows = [90_000, 60_000, 80_000].map((delay, i) => ({ entry: ids[i] ?? "", delay }));
  const { redis, keys } = queue;
  const args = { channel: keys.channel, group: "g", consumer: "c", heldCount: 3 };
  const { serverTime } = await run(
    redis,
    retryLater,
    keys,
    args,
    rows.map((row) => ({ ...row, own: 0, counted: 1, reason: "" })),
  );
  if (others !== undefined) {
    await queue.redis.zrem(queue.keys.retries, "\0another");
    await queue.redis.hdel(queue.keys.retrying, "\0another");
  }
  const { channel = [] } = await queue.snapshot();
  expect(channel).toEqual(heard ? [String(Math.ceil(serverTime + 60_000))] : []);
});

test("retry-later: keeps the old entry for a group that still needs it", async () => {
  const queue = await newStreams("g", "h");
  const [a = "", b = ""] = await queue.add("a", { p: "b", g: "g" });
  await queue.deliver("g", "c");
  await retrying(queue, [a]);
  await retrying(queue, [b], { own: 1, delay: 70_000 });
  await queue.deliver("h", "c");
  const { settled } = await retrying(queue, [a], { group: "h", delay: 80_000 });
  expect(settled).toEqual([true]);
  const { stream, inFlight, retries } = await queue.snapshot();
  expect({ stream, inFlight }).toEqual({});
  expect(retries).toEqual([
    { p: "a", n: 1, g: "g", f: "1: busy" },
    { p: "b", n: 1, g: "g", f: "1: busy" },
    { p: "a", n: 1, g: "h", f: "1: busy" },
  ]);
});

test("retry-later: skips entries that are not in flight for this consumer", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", "b");
  await queue.deliver("g", "c", 1);
  const before = await queue.snapshot();
  const { settled } = await retrying(queue, ids, { consumer: "other" });
  expect(settled).toEqual([false, false]);
  expect(await queue.snapshot()).toEqual(before);
});

test("retry-later: changes nothing when it is sent again", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a");
  await queue.deliver("g", "c", 1);
  await retrying(queue, ids);
  const before = await queue.snapshot();
  const dueBefore = await dues(queue);
  expect((await retrying(queue, [...ids, ...ids], { delay: 1 })).settled).toEqual([false, false]);
  expect(await queue.snapshot()).toEqual(before);
  expect(await dues(queue)).toEqual(dueBefore);
});

test("retry-later: entries that are gone are only acknowledged, foreign ones are set aside", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", { p: "b", a: "x".repeat(256) });
  ids.push(String(await queue.redis.xadd(queue.keys.stream, "*", "some", "thing")));
  await queue.deliver("g", "c");
  await queue.redis.xdel(queue.keys.stream, ids[0] ?? "");
  expect((await retrying(queue, ids)).settled).toEqual([false, false, false]);
  expect(await queue.snapshot()).toEqual({
    unreadable: [`a${"x".repeat(256)}pb`, "something"],
  });
});

test("retry-later: takes a hundred at once", async () => {
  const queue = await newStreams("g", "h");
  const payloads = Array.from({ length: 100 }, (_, i) => `m${100 + i}`);
  const ids = await queue.add(...payloads);
  await queue.deliver("g", "c");
  expect((await retrying(queue, ids)).settled).toEqual(ids.map(() => true));
  const { stream, inFlight, retries } = await queue.snapshot();
  expect(stream).toEqual(payloads.map((p) => ({ p })));
  expect(inFlight).toBeUndefined();
  expect(retries).toEqual(payloads.map((p) => ({ p, n: 1, g: "g", f: "1: busy" })));
});

test.each(["timeouts", "retries", "retrying"] as const)(
  "retry-later: changes nothing if the key %s has another type",
  async (key) => {
    const queue = await newStreams("g");
    const ids = await queue.add("a", "b");
    await queue.deliver("g", "c");
    await queue.redis.set(queue.keys[key], "somebody else's");
    await expect(retrying(queue, ids)).rejects.toThrow(/^WRONGTYPE/);
    await queue.redis.del(queue.keys[key]);
    expect(await queue.snapshot()).toEqual({
      stream: [{ p: "a" }, { p: "b" }],
      inFlight: { g: { c: ["a", "b"] } },
    });
  },
);

test("retry-later: false without a group or a stream", async () => {
  const queue = await newStreams();
  expect((await retrying(queue, ["1-1"])).settled).toEqual([false]);
  await queue.addGroup("h");
  expect((await retrying(queue, ["1-1"])).settled).toEqual([false]);
  expect(await queue.snapshot()).toEqual({});
});

test("retry-later: of several retries due at once one is published, whichever sorts first", async () => {
  const queue = await newStreams("g");
  // The last row sorts first, since names sort by their bytes.
  const ids = await queue.add("z", "y", "a");
  await queue.deliver("g", "c", 3);
  const { serverTime } = await retrying(queue, ids);
  const { channel } = await queue.snapshot();
  expect(channel).toEqual([String(Math.ceil(serverTime + 60_000))]);
});
