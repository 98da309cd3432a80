import { once } from "node:events";
import { expect, test } from "vitest";
import { RejectError, type QueueCounters } from "../../../src/index.ts";
import { newConsumerName } from "../../../src/reliable/group/consumer-name.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

/** The counts that are not 0, and the number of durations in each histogram. */
function seen(counters: QueueCounters): Record<string, number> {
  const numbers = Object.entries(counters).map(([name, value]): [string, number] => [
    name,
    typeof value === "number" ? value : value.count,
  ]);
  return Object.fromEntries(numbers.filter(([, count]) => count > 0));
}

test("a plain queue counts messages offered, moved, taken, cancelled, and handled", async () => {
  const name = uniqueName();
  const line = newLineThatMayFail();
  const queue = line.getDelayedQueue<number>(name);
  const ready = line.getBlockingQueue<number>(name);
  await queue.offer(1, 60_000, { key: "k" });
  await queue.offer(2, 60_000, { key: "k" });
  expect(seen(queue.counters)).toEqual({ offered: 1 });
  await queue.offer(3, 60_000, { key: "k", onDuplicate: "replace" });
  expect(await queue.cancelMany(["k", "unknown"])).toEqual([true, false]);
  await queue.offerMany([4, 5, 6].map((payload) => ({ payload, delay: 60_000 })));
  expect(await queue.insertionOrder.remove(4)).toBe(true);
  expect(await queue.insertionOrder.poll()).toBe(5);
  expect(await queue.clear()).toBe(1);
  expect(seen(queue.counters)).toEqual({ offered: 5, cancelled: 3, taken: 1 });

  await queue.offerMany([7, 8].map((payload) => ({ payload, delay: 0 })));
  await ready.put(9);
  const taken = [await ready.take(), await ready.poll(1000)];
  await eventually(() => queue.counters.transferred === 2);
  const all = new Set([...taken, ...(await ready.drain())]);
  expect(all).toEqual(new Set([7, 8, 9]));
  ready.subscribe((payload) => {
    if (payload === 10) throw new Error("bad");
  });
  await ready.putMany([10, 11]);
  await eventually(() => queue.counters.handling.count === 2);
  expect(seen(ready.counters)).toEqual({
    offered: 10,
    cancelled: 3,
    transferred: 2,
    systemLateness: 2,
    taken: 6,
    handling: 2,
    failed: 1,
  });
});

test("a reliable queue counts the outcomes of deliveries", async () => {
  const line = newLine();
  const queue = line.getReliableQueue<string>(uniqueName(), { maxAttempts: 2 });
  await queue.offer("by hand", 0);
  expect(await (await queue.take()).nack({ delay: 0 })).toBe(true);
  const again = await queue.take();
  expect([await again.ack(), await again.ack()]).toEqual([true, false]);
  expect(seen(queue.counters)).toEqual({
    offered: 1,
    transferred: 2,
    systemLateness: 2,
    taken: 2,
    backlogLateness: 2,
    retried: 1,
    acknowledged: 1,
  });
  expect(queue.counters.backlogLateness.sum).toBeLessThan(20_000);

  const { id } = await queue.offer("cancelled", 0);
  await (await queue.take()).nack({ delay: 60_000 });
  expect(await queue.cancel(id)).toBe(true);
  queue.subscribe(
    (payload) => {
      if (payload === "rejected") throw new RejectError("bad");
      if (payload === "failing") throw new Error("bad");
    },
    { onError: () => {} },
  );
  await queue.offerMany(["fine", "rejected"].map((payload) => ({ payload, delay: 0 })));
  await eventually(() => queue.counters.dead === 1 && queue.counters.acknowledged === 2);
  const { cancelled, failed, taken, handling, retried } = queue.counters;
  expect({ cancelled, failed, taken, retried, handled: handling.count }).toEqual({
    cancelled: 1,
    failed: 1,
    taken: 5,
    retried: 2,
    handled: 2,
  });
});

test("lateness runs from the deadline, or from the offer if that is later, to the move, and from there to the take", async () => {
  const name = uniqueName();
  const own = newRedis();
  const line = newLine();
  const queue = line.getReliableQueue<number>(name);
  await queue.pause();
  await queue.offerAt(1, Date.now() - 3_600_000);
  await new Promise((resolve) => setTimeout(resolve, 60));
  await queue.resume();
  await eventually(async () => (await own.xlen(`delayline_stream:{${name}}`)) === 1);
  await new Promise((resolve) => setTimeout(resolve, 60));
  await (await queue.take()).ack();
  const { systemLateness, backlogLateness } = queue.counters;
  expect(systemLateness.sum).toBeGreaterThan(55);
  expect(systemLateness.sum).toBeLessThan(60_000);
  expect(backlogLateness.sum).toBeGreaterThan(55);
  expect(backlogLateness.sum).toBeLessThan(60_000);
});

test("a handler cut short by closing its subscription has not failed", async () => {
  const line = newLineThatMayFail();
  const queue = line.getBlockingQueue<number>(uniqueName());
  let isBegun = false;
  const subscription = queue.subscribe(async (_payload, { signal }) => {
    isBegun = true;
    await once(signal, "abort");
    signal.throwIfAborted();
  });
  await queue.put(1);
  await eventually(() => isBegun);
  await subscription.close();
  expect(queue.counters).toMatchObject({ failed: 0, handling: { count: 1 } });
});

test("the pause before a retry in strict order is no lateness", async () => {
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<string>(uniqueName(), {
    partitions: 1,
    exclusive: true,
    strict: true,
    retry: () => 4000,
  });
  let attempts = 0;
  queue.subscribe(() => {
    if (++attempts === 1) throw new Error("bad");
  });
  await queue.offer("x", 0);
  await eventually(() => queue.counters.acknowledged === 1);
  const { count, sum } = queue.counters.backlogLateness;
  expect(count).toBe(2);
  expect(sum).toBeLessThan(3900);
});

test("messages of a dead consumer are reclaimed, or become dead letters", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const line = newLine();
  const options = { leaseTimeout: 1000, maxAttempts: 2 };
  const queue = line.getReliableQueue<number>(name, options);
  await queue.offerMany([1, 2].map((payload) => ({ payload, delay: 0 })));
  const stream = `delayline_stream:{${name}}`;
  await eventually(async () => (await redis.xlen(stream)) === 2);
  await redis.xreadgroup("GROUP", "default", newConsumerName(1000, 8), "STREAMS", stream, ">");
  const deliveries = await queue.takeMany({ limit: 2 });
  if (deliveries.length === 1) deliveries.push(await queue.take());
  for (const delivery of deliveries) await delivery.ack();
  expect(queue.counters).toMatchObject({ reclaimed: 2, dead: 0, acknowledged: 2 });
});

test.each([{ exclusive: false }, { exclusive: true }])(
  "the counters cover all partitions; exclusive: $exclusive",
  async ({ exclusive }) => {
    const line = newLine({ redis: redisUrl() });
    const [plain, reliable] = [uniqueName(), uniqueName()];
    const options = { partitions: 2, ...(exclusive && { exclusive }) };
    const offers = Array.from({ length: 10 }, (_, payload) => ({ payload, delay: 0 }));
    const expected = { offered: 10, transferred: 10, taken: 10, handling: 10, systemLateness: 10 };
    const queue = line.getDelayedQueue<number>(plain, { partitions: 2 });
    line.getBlockingQueue<number>(plain, { partitions: 2 }).subscribe(() => {});
    const acknowledging = line.getReliableQueue<number>(reliable, options);
    acknowledging.subscribe(() => {});
    await Promise.all([queue.offerMany(offers), acknowledging.offerMany(offers)]);
    await eventually(() => {
      expect(seen(queue.counters)).toEqual(expected);
      expect(seen(acknowledging.counters)).toEqual({
        ...expected,
        acknowledged: 10,
        backlogLateness: 10,
      });
    });
  },
);
