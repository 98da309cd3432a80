import { expect, test } from "vitest";
import { beat } from "../../../src/lua/reliable/consumers.ts";
import { run } from "../../../src/lua/script.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const beating = (
  { redis, keys }: Streams,
  { consumer = "c", after = "", limit = 100, isReading = 0 } = {},
) => run(redis, beat, keys, { group: "g", consumer, after, limit, isReading });

const field = (row: readonly (string | number)[], name: string) => row[row.indexOf(name) + 1];

/** How long ago Redis last saw each consumer (ms). */
async function idles({ redis, keys }: Streams): Promise<Record<string, number>> {
  const rows = (await redis.xinfo("CONSUMERS", keys.stream, "g")) as (string | number)[][];
  return Object.fromEntries(rows.map((row) => [field(row, "name"), Number(field(row, "idle"))]));
}

/** Creates a consumer without messages, and waits a little, so that the next one is seen later. */
async function addIdler(queue: Streams): Promise<void> {
  await queue.redis.xgroup("CREATECONSUMER", queue.keys.stream, "g", "idler");
  await eventually(async () => ((await idles(queue))["idler"] ?? 0) >= 50);
}

async function seenBehindIdler(queue: Streams): Promise<number> {
  const { c = NaN, idler = NaN } = await idles(queue);
  return idler - c;
}

test("beat: returns what is in flight for the consumer, page by page", async () => {
  const queue = await newStreams("g", "h");
  const [a = "", b = "", , d = "", e = ""] = await queue.add("a", "b", "c", "d", "e");
  await queue.deliver("g", "c", 2);
  await queue.deliver("g", "other", 1);
  await queue.deliver("g", "c", 1);
  await queue.deliver("h", "c", 5);
  expect(await beating(queue)).toEqual([a, b, d]);
  expect(await beating(queue, { limit: 2 })).toEqual([a, b]);
  expect(await beating(queue, { limit: 2, after: b })).toEqual([d]);
  expect(await beating(queue, { after: e })).toEqual([]);
});

test("beat: updates when the consumer was seen, and counts no delivery", async () => {
  const queue = await newStreams("g");
  const [a = ""] = await queue.add("a");
  await queue.deliver("g", "c");
  await addIdler(queue);
  expect(await seenBehindIdler(queue)).toBeLessThanOrEqual(0);
  await beating(queue);
  await beating(queue, { consumer: "idler" });
  expect(await seenBehindIdler(queue)).toBeGreaterThanOrEqual(50);
  expect(await queue.redis.xpending(queue.keys.stream, "g", a, a, 1)).toEqual([
    [a, "c", expect.any(Number), 1],
  ]);
});

test("beat: since when an entry is in flight stays as it is", async () => {
  const queue = await newStreams("g");
  await queue.add("a", "b");
  await queue.deliver("g", "c");
  const ages = async () => {
    const rows = await queue.redis.xpending(queue.keys.stream, "g", "-", "+", 10);
    return (rows as [string, string, number][]).map(([, , age]) => age);
  };
  await eventually(async () => (await ages()).every((age) => age >= 50));
  for (let i = 0; i < 3; i++) await beating(queue);
  expect(Math.min(...(await ages()))).toBeGreaterThanOrEqual(50);
  expect((await idles(queue))["c"]).toBeLessThan(50);
});

test("beat: of a consumer that only reads, it updates when that was seen, and delivers nothing", async () => {
  const queue = await newStreams("g");
  await addIdler(queue);
  await queue.add("a");
  expect(await beating(queue, { consumer: "idler", isReading: 1 })).toEqual([]);
  expect((await idles(queue))["idler"]).toBeLessThan(50);
  expect(await queue.redis.xpending(queue.keys.stream, "g")).toEqual([0, null, null, null]);
});

test("beat: creates no consumer", async () => {
  const queue = await newStreams("g");
  await queue.add("a");
  expect(await beating(queue, { consumer: "nobody" })).toEqual([]);
  expect(await idles(queue)).toEqual({});
});

test("beat: also updates the consumer if the data of its first entries are gone", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", "b", "c");
  await queue.deliver("g", "c");
  await queue.redis.xdel(queue.keys.stream, ids[0] ?? "", ids[1] ?? "");
  await addIdler(queue);
  expect((await beating(queue)).at(-1)).toBe(ids[2]);
  expect(await seenBehindIdler(queue)).toBeGreaterThanOrEqual(50);
});

test("beat: a page is full even if the data of its first entry are gone, since more may follow", async () => {
  const queue = await newStreams("g");
  const [a = "", b = ""] = await queue.add("a", "b", "c");
  await queue.deliver("g", "c");
  await queue.redis.xdel(queue.keys.stream, a);
  expect(await beating(queue, { limit: 2 })).toEqual([a, b]);
});

test("beat: nothing without a group or a stream; fails for a key of another type", async () => {
  const queue = await newStreams();
  expect(await beating(queue)).toEqual([]);
  await queue.addGroup("h");
  expect(await beating(queue)).toEqual([]);
  await queue.redis.set(queue.keys.stream, "somebody else's");
  await expect(beating(queue)).rejects.toThrow(/^WRONGTYPE/);
});
