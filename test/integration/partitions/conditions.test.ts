import { expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

test("conditions follow a message into its partition, and are asked there", async () => {
  const name = uniqueName("conditions");
  const [line, redis] = [newLine(), newRedis()];
  const orders = line.getDelayedQueue<string>(name);
  const status = `{${name}}:status`;
  const keys = Array.from({ length: 20 }, (_, i) => `order:${i}`);
  await orders.offerMany(
    keys.map((key, i) => ({
      payload: key,
      delay: 600_000,
      key,
      onlyIf: { key: `${status}:${i % 2}`, exists: false },
      deliverWithin: 60_000,
    })),
  );
  await line.setPartitions(name, 3);
  for (const [i, key] of keys.entries()) {
    expect(await orders.get(key)).toMatchObject({
      onlyIf: { key: `${status}:${i % 2}`, exists: false },
      deliverWithin: 60_000,
    });
  }
  await redis.set(`${status}:1`, "paid");
  for (const key of keys) await orders.promote(key);
  const ready = line.getBlockingQueue<string>(name);
  await eventually(async () => (await orders.size()) === 0);
  const taken = await ready.drain();
  expect(taken.toSorted()).toEqual(keys.filter((_, i) => i % 2 === 0).toSorted());
  const { dropped, perPartition } = await orders.stats();
  expect(dropped).toBe(10);
  expect(perPartition.filter((part) => part.dropped > 0).length).toBeGreaterThan(1);
});
