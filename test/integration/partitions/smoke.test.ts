import { expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";

test("messages of a queue in partitions come back, each once", async () => {
  const line = newLine();
  const name = uniqueName("partitions");
  const queue = line.getDelayedQueue<number>(name, { partitions: 8 });
  const ready = line.getBlockingQueue<number>(name, { partitions: 8 });
  const results = await queue.offerMany(
    Array.from({ length: 1000 }, (_, i) => ({ payload: i, delay: 50 + (i % 100) })),
  );
  expect(new Set(results.map(({ id }) => id)).size).toBe(1000);
  const taken: number[] = [];
  while (taken.length < 1000) taken.push(...(await ready.takeMany({ max: 50 })));
  expect(taken.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 1000 }, (_, i) => i));
});

test("a change", async () => {
  const line = newLine();
  const name = uniqueName("partitions");
  const queue = line.getDelayedQueue<number>(name, { partitions: 2 });
  await queue.offerMany(
    Array.from({ length: 1000 }, (_, i) => ({ payload: i, delay: 60_000, key: `k${i}` })),
  );
  await line.setPartitions(name, 8);
  console.log(await line.partitions(name));
  expect(await queue.size()).toBe(1000);
  expect(await queue.cancel("k5")).toBe(true);
  await line.setPartitions(name, 3);
  console.log(await line.partitions(name));
  expect(await queue.size()).toBe(999);
  expect(await queue.cancel("k5")).toBe(false);
  expect(await queue.cancel("k6")).toBe(true);
  expect((await queue.readAll()).length).toBe(998);
  expect(await queue.clear()).toBe(998);
});

test("reliable", async () => {
  const line = newLine();
  const name = uniqueName("partitions");
  const queue = line.getReliableQueue<number>(name, { partitions: 4 });
  await queue.offerMany(Array.from({ length: 300 }, (_, i) => ({ payload: i, delay: 20 })));
  const taken: number[] = [];
  queue.subscribe((payload) => void taken.push(payload), { concurrency: 10 });
  await expect.poll(() => taken.length, { timeout: 5000 }).toBe(300);
});
