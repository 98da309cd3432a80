import { expect, test } from "vitest";
import { inFlightPage } from "../../../src/lua/reliable/in-flight-page.ts";
import { run } from "../../../src/lua/script.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const page = (
  { redis, keys }: Streams,
  {
    after = "",
    limit = 100,
    maxBytes = 1e6,
  }: { after?: string; limit?: number; maxBytes?: number } = {},
) => run(redis, inFlightPage, keys, { group: "g", after, limit, maxBytes });

const shortly = async (queue: Streams, args = {}) => {
  const { entries, next } = await page(queue, args);
  return {
    next,
    found: entries.map(({ entry, consumer }) => `${consumer} ${String(entry.payload)}`),
  };
};

test("in-flight-page: what is in flight for the group, page by page", async () => {
  const queue = await newStreams("g", "h");
  const [, b = ""] = await queue.add("a", "b", "c", "d");
  await queue.deliver("h", "elsewhere");
  await queue.deliver("g", "one", 1);
  await queue.deliver("g", "two", 2);
  const before = await queue.snapshot();
  expect(await shortly(queue)).toEqual({ found: ["one a", "two b", "two c"], next: undefined });
  expect(await shortly(queue, { limit: 2 })).toEqual({ found: ["one a", "two b"], next: b });
  expect(await shortly(queue, { limit: 2, after: b })).toEqual({
    found: ["two c"],
    next: undefined,
  });
  expect(await shortly(queue, { maxBytes: 1 })).toMatchObject({ found: ["one a"] });
  expect(await queue.snapshot()).toEqual(before);
});

test("in-flight-page: since when each is in flight, and how often it was delivered", async () => {
  const queue = await newStreams("g");
  const [a = ""] = await queue.add("a");
  await queue.deliver("g", "c");
  const { redis, keys } = queue;
  await redis.call(
    "XCLAIM",
    keys.stream,
    "g",
    "c",
    0,
    a,
    "IDLE",
    60_000,
    "RETRYCOUNT",
    3,
    "JUSTID",
  );
  const [seconds] = await redis.time();
  const [found] = (await page(queue)).entries;
  expect(found?.deliveries).toBe(3);
  expect(Math.abs(Number(seconds) * 1000 - 60_000 - (found?.takenAt ?? 0))).toBeLessThan(10_000);
});

test("in-flight-page: leaves out entries that are gone or foreign, and goes on behind them", async () => {
  const queue = await newStreams("g");
  const [a = ""] = await queue.add("a");
  const foreign = String(await queue.redis.xadd(queue.keys.stream, "*", "what", "is this"));
  await queue.add("b");
  await queue.deliver("g", "c");
  await queue.redis.xdel(queue.keys.stream, a);
  expect(await shortly(queue)).toEqual({ found: ["c b"], next: undefined });
  expect(await shortly(queue, { limit: 2 })).toEqual({ found: [], next: foreign });
});

test("in-flight-page: nothing without a group or a stream; fails for a key of another type", async () => {
  const queue = await newStreams();
  expect(await shortly(queue)).toEqual({ found: [], next: undefined });
  await queue.addGroup("h");
  expect(await shortly(queue)).toEqual({ found: [], next: undefined });
  await queue.redis.set(queue.keys.stream, "somebody else's");
  await expect(page(queue)).rejects.toThrow(/^WRONGTYPE/);
});
