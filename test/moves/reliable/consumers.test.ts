import { expect, test } from "vitest";
import { consumers, leave } from "../../../src/lua/reliable/consumers.ts";
import { run } from "../../../src/lua/script.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const listing = ({ redis, keys }: Streams) => run(redis, consumers, keys, { group: "g" });

const leaving = ({ redis, keys }: Streams, consumer: string) =>
  run(redis, leave, keys, { group: "g", consumer });

test("consumers: returns names, numbers in flight, and how long ago each was seen", async () => {
  const queue = await newStreams("g", "h");
  await queue.add("a", "b", "c");
  expect(await listing(queue)).toEqual([]);
  await queue.deliver("g", "zoë", 2);
  await queue.deliver("h", "elsewhere");
  await eventually(async () => (await listing(queue)).every(({ idle }) => idle >= 50));
  await queue.deliver("g", "c", 1);
  const found = (await listing(queue)).toSorted((one, other) => one.inFlight - other.inFlight);
  expect(found).toEqual([
    { name: "c", inFlight: 1, idle: expect.any(Number) },
    { name: "zoë", inFlight: 2, idle: expect.any(Number) },
  ]);
  const [c, zoe] = found.map(({ idle }) => idle);
  expect((zoe ?? 0) - (c ?? 0)).toBeGreaterThanOrEqual(49);
});

test("consumers: none without a group or a stream; fails for a key of another type", async () => {
  const queue = await newStreams();
  expect(await listing(queue)).toEqual([]);
  await queue.addGroup("h");
  expect(await listing(queue)).toEqual([]);
  await queue.redis.set(queue.keys.stream, "somebody else's");
  await expect(listing(queue)).rejects.toThrow(/^WRONGTYPE/);
});

test("leave: removes a consumer that has nothing in flight, and no other", async () => {
  const queue = await newStreams("g");
  const [a = ""] = await queue.add("a", "b");
  await queue.deliver("g", "c", 1);
  await queue.deliver("g", "other", 1);
  const before = await queue.snapshot();
  expect(await leaving(queue, "c")).toBe(false);
  expect(await queue.snapshot()).toEqual(before);
  await queue.redis.xack(queue.keys.stream, "g", a);
  expect(await leaving(queue, "c")).toBe(true);
  expect(await leaving(queue, "c")).toBe(true);
  expect((await listing(queue)).map(({ name }) => name)).toEqual(["other"]);
});

test("leave: an entry whose data are gone keeps the consumer, too", async () => {
  const queue = await newStreams("g");
  const [a = ""] = await queue.add("a");
  await queue.deliver("g", "c");
  await queue.redis.xdel(queue.keys.stream, a);
  expect(await leaving(queue, "c")).toBe(false);
});

test("leave: true without a group or a stream; fails for a key of another type", async () => {
  const queue = await newStreams();
  expect(await leaving(queue, "c")).toBe(true);
  await queue.addGroup("h");
  expect(await leaving(queue, "c")).toBe(true);
  await queue.redis.set(queue.keys.stream, "somebody else's");
  await expect(leaving(queue, "c")).rejects.toThrow(/^WRONGTYPE/);
});
