import { expect, test } from "vitest";
import { consumers } from "../../../src/lua/reliable/consumers.ts";
import { extend } from "../../../src/lua/reliable/deliveries.ts";
import { run } from "../../../src/lua/script.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newStreams, rowsOf, type Streams } from "../../helpers/streams.ts";

const extending = ({ redis, keys }: Streams, ids: readonly string[], consumer = "c") =>
  run(redis, extend, keys, { group: "g", consumer }, rowsOf(ids, {}));

type Row = readonly [id: string, consumer: string, idle: number, deliveries: number];

const rows = async ({ redis, keys }: Streams) =>
  (await redis.xpending(keys.stream, "g", "-", "+", 1000)) as Row[];

test("extend: renews the consumer's leases, counts no delivery, and keeps since when entries are in flight", async () => {
  const queue = await newStreams("g", "h");
  const ids = await queue.add("a", "b", "c", "d", "e");
  await queue.deliver("g", "c", 2);
  await queue.deliver("g", "other", 1);
  await queue.deliver("g", "c", 1);
  await queue.deliver("h", "c");
  const before = await queue.snapshot();
  await eventually(async () => (await rows(queue)).every(([, , idle]) => idle >= 50));
  const asked = [3, 2, 0, 4, 3].map((i) => ids[i] ?? "");
  expect(await extending(queue, asked)).toEqual([true, false, true, false, true]);
  expect(Math.min(...(await rows(queue)).map(([, , idle]) => idle))).toBeGreaterThanOrEqual(50);
  const found = await run(queue.redis, consumers, queue.keys, { group: "g" });
  const idleOf = (name: string) => found.find((one) => one.name === name)?.idle ?? NaN;
  expect(idleOf("other") - idleOf("c")).toBeGreaterThanOrEqual(50);
  expect((await rows(queue)).map(([, , , deliveries]) => deliveries)).toEqual([1, 1, 1, 1]);
  expect(await queue.snapshot()).toEqual(before);
});

test("extend: a hundred entries among others", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add(...Array.from({ length: 400 }, (_, i) => `m${i}`));
  await queue.deliver("g", "c");
  const asked = ids.filter((_, i) => i % 4 === 0);
  expect(await extending(queue, asked)).toEqual(asked.map(() => true));
});

test("extend: creates no consumer, and takes nothing from another one", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a");
  await queue.deliver("g", "other");
  const before = await queue.snapshot();
  expect(await extending(queue, ids)).toEqual([false]);
  expect(await queue.redis.xinfo("CONSUMERS", queue.keys.stream, "g")).toHaveLength(1);
  expect(await queue.snapshot()).toEqual(before);
});

test("extend: false without a group or a stream; fails for a key of another type", async () => {
  const queue = await newStreams();
  expect(await extending(queue, ["1-1"])).toEqual([false]);
  await queue.addGroup("h");
  expect(await extending(queue, ["1-1"])).toEqual([false]);
  expect(await extending(queue, [])).toEqual([]);
  await queue.redis.set(queue.keys.stream, "somebody else's");
  await expect(extending(queue, ["1-1"])).rejects.toThrow(/^WRONGTYPE/);
});
