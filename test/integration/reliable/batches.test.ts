import { expect, test } from "vitest";
import { ClosedError, type Delivery } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { newClock, MINUTE, SECOND } from "../../helpers/test-clock.ts";

/** Batches that wait to fill up. */

const HOUR = 60 * MINUTE;

/** How many entries are in flight. */
async function inFlight(name: string, group = "default"): Promise<number> {
  const [count] = (await newRedis().xpending(queueKeys(name).stream, group)) as [number];
  return count;
}

function payloadsOf<T>(deliveries: readonly Delivery<T>[]): T[] {
  return deliveries.map(({ payload }) => payload);
}

test("takeMany waits from the first message on until the batch is full", async () => {
  const name = uniqueName("batch");
  const queue = newLine().getReliableQueue<number>(name);
  const taking = queue.takeMany({ limit: 3, wait: HOUR });
  await queue.offer(0, 0);
  await eventually(async () => (await inFlight(name)) === 1);
  await queue.offer(1, 0);
  await eventually(async () => (await inFlight(name)) === 2);
  await queue.offer(2, 0);
  const batch = await taking;
  expect(payloadsOf(batch)).toEqual([0, 1, 2]);
  for (const delivery of batch) expect(await delivery.ack()).toBe(true);
});

test("the wait begins with the first message, and ends with fewer; the timeout is for the first", async () => {
  const clock = await newClock();
  const name = uniqueName("batch");
  const queue = newLine().getReliableQueue<number>(name);
  expect(await clock.until(queue.takeMany({ limit: 3, timeout: MINUTE, wait: HOUR }))).toEqual([]);
  const taking = queue.takeMany({ limit: 3, timeout: 30 * SECOND, wait: 10 * SECOND });
  let takenAt: number | undefined;
  void taking.then(() => (takenAt = clock.now.getTime()));
  const startedAt = clock.now.getTime();
  await queue.offer(0, 20 * SECOND);
  await queue.offer(1, 29 * SECOND);
  await queue.offer(2, 31 * SECOND);
  await clock.advance(MINUTE);
  expect(payloadsOf(await taking)).toEqual([0, 1]);
  expect((takenAt ?? 0) - startedAt).toBe(30 * SECOND);
});

test("an aborted takeMany gives all back, and no attempt counts", async () => {
  const name = uniqueName("batch");
  const queue = newLine().getReliableQueue<number>(name, { maxAttempts: 1 });
  const aborting = new AbortController();
  const taking = queue.takeMany({ limit: 3, wait: HOUR, signal: aborting.signal });
  await queue.offerMany([0, 1].map((payload) => ({ payload, delay: 0 })));
  await eventually(async () => (await inFlight(name)) === 2);
  aborting.abort(new Error("enough"));
  await expect(taking).rejects.toThrow("enough");
  const again = await queue.takeMany({ limit: 2, wait: HOUR });
  expect(again.map(({ payload, attempt }) => [payload, attempt])).toEqual([
    [0, 1],
    [1, 1],
  ]);
  expect(again.flatMap(({ failures }) => failures)).toEqual([]);
  expect(await queue.deadLetters.size()).toBe(0);
  expect(queue.counters.taken).toBe(2);
});

test.each(["the client", "the queue"])(
  "closing %s gives back what a takeMany has gathered",
  async (what) => {
    const name = uniqueName("batch");
    const line = newLine();
    const queue = line.getReliableQueue<number>(name, { maxAttempts: 1 });
    const taking = queue.takeMany({ limit: 3, wait: HOUR });
    await queue.offer(0, 0);
    await eventually(async () => (await inFlight(name)) === 1);
    const refused = expect(taking).rejects.toThrow(ClosedError);
    await (what === "the client" ? line.close() : line.closeQueue(name));
    await refused;
    const other = newLine().getReliableQueue<number>(name);
    const next = await other.take();
    expect([next.payload, next.attempt]).toEqual([0, 1]);
  },
);

test("leases are kept while the batch waits, and begin anew when it is handed out", async () => {
  const name = uniqueName("batch");
  const options = { leaseTimeout: 1000 };
  const queue = newLine().getReliableQueue<number>(name, options);
  // Looks for dead consumers all the time.
  const other = newLine().getReliableQueue<number>(name, options);
  const taking = queue.takeMany({ limit: 2, wait: 3000 });
  await queue.offer(0, 0);
  await eventually(async () => (await inFlight(name)) === 1);
  const foreign = other.poll(20_000);
  const batch = await taking;
  expect(payloadsOf(batch)).toEqual([0]);
  expect(batch[0]?.attempt).toBe(1);
  const left = (batch[0]?.leaseEndsAt ?? 0) - Date.now();
  expect(left).toBeGreaterThan(300);
  expect(await batch[0]?.ack()).toBe(true);
  await queue.offer(1, 0);
  expect((await foreign)?.payload).toBe(1);
});

test("what was revoked while it was gathered is not in the batch; if nothing is left, the wait goes on", async () => {
  const name = uniqueName("batch");
  const queue = newLine().getReliableQueue<number>(name);
  const taking = queue.takeMany({ limit: 2, wait: HOUR });
  const { id } = await queue.offer(0, 0);
  await eventually(async () => (await inFlight(name)) === 1);
  expect(await queue.revoke(id)).toMatchObject({ stage: "running" });
  await queue.offer(1, 0);
  await eventually(async () => (await inFlight(name)) === 1);
  await queue.offer(2, 0);
  expect(payloadsOf(await taking)).toEqual([1, 2]);
  expect(queue.counters.taken).toBe(2);

  const first = queue.takeMany({ limit: 2, wait: 200 });
  const lost = await queue.offer(3, 0);
  await eventually(async () => (await inFlight(name)) === 3);
  await queue.revoke(lost.id);
  await queue.offer(4, 1000);
  expect(payloadsOf(await first)).toEqual([4]);
});

test("a handler of batches gets full ones, and what there is when the time is over", async () => {
  const name = uniqueName("batch");
  const line = newLine();
  const queue = line.getReliableQueue<number>(name);
  const batches: number[][] = [];
  queue.subscribeBatch((deliveries) => void batches.push(payloadsOf(deliveries)), {
    limit: 3,
    wait: 1000,
  });
  for (const i of upTo(4)) {
    await queue.offer(i, 0);
    await eventually(async () => (await inFlight(name)) !== i % 3 || batches.length > 0);
  }
  await eventually(() => batches.length === 2);
  expect(batches).toEqual([[0, 1, 2], [3]]);
  await eventually(async () => (await inFlight(name)) === 0);
  expect(queue.counters.acknowledged).toBe(4);
});

test("many handlers fill their batches one by one, and the next while others run", async () => {
  const name = uniqueName("batch");
  const queue = newLine().getReliableQueue<number>(name);
  const batches: number[][] = [];
  const mayEnd = new Gate();
  queue.subscribeBatch(
    async (deliveries) => {
      batches.push(payloadsOf(deliveries));
      await mayEnd.opened;
    },
    { limit: 4, wait: HOUR, concurrency: 3 },
  );
  for (const i of upTo(12)) {
    await queue.offer(i, 0);
    // One after another, so that each could go to another handler.
    await eventually(async () => (await inFlight(name)) === i + 1);
  }
  await eventually(() => batches.length === 3);
  expect(batches).toEqual([
    [0, 1, 2, 3],
    [4, 5, 6, 7],
    [8, 9, 10, 11],
  ]);
  mayEnd.open();
});

test("a subscription that closes gives back what it has gathered, and calls no handler", async () => {
  const name = uniqueName("batch");
  const line = newLine();
  const queue = line.getReliableQueue<number>(name, { maxAttempts: 1 });
  let calls = 0;
  const subscription = queue.subscribeBatch(() => void calls++, { limit: 3, wait: HOUR });
  await queue.offerMany([0, 1].map((payload) => ({ payload, delay: 0 })));
  await eventually(async () => (await inFlight(name)) === 2);
  await subscription.close();
  const again = await queue.takeMany({ limit: 2, wait: HOUR });
  expect(again.map(({ payload, attempt }) => [payload, attempt])).toEqual([
    [0, 1],
    [1, 1],
  ]);
  expect(calls).toBe(0);
});

test("with partitions and several groups each has its own batch", async () => {
  const name = uniqueName("batch");
  const line = newLine();
  const groups = ["mail", "audit"].map((group) =>
    line.getReliableQueue<number>(name, { group, partitions: 3 }),
  );
  const all = groups.map((queue) => queue.takeMany({ limit: 9, wait: HOUR }));
  const [queue] = groups;
  for (const i of upTo(9)) await queue?.offer(i, 0, { key: `order:${i}` });
  for (const batch of await Promise.all(all)) {
    expect(payloadsOf(batch).toSorted((a, b) => a - b)).toEqual(upTo(9));
    for (const delivery of batch) expect(await delivery.ack()).toBe(true);
  }
});

test("what is gathered holds its slots, so a lane has no more of a batch than its limit", async () => {
  const name = uniqueName("batch");
  const queue = newLine().getReliableQueue<number>(name);
  await queue.flow.set({ lane: { concurrency: 2 } });
  const taking = queue.takeMany({ limit: 5, wait: 1000 });
  for (const i of upTo(3)) await queue.offer(i, 0, { lane: "a" });
  await queue.offer(9, 0, { lane: "b" });
  const batch = await taking;
  expect(payloadsOf(batch).toSorted((a, b) => a - b)).toEqual([0, 1, 9]);
  expect((await queue.stats()).waiting).toBe(1);
  for (const delivery of batch) await delivery.ack();
  expect((await queue.take()).payload).toBe(2);
});

test("a suspect is a batch of its own, which does not wait", async () => {
  const name = uniqueName("batch");
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<number>(name, { leaseTimeout: 60_000, maxAttempts: 9 });
  await queue.offer(0, 0);
  const redis = newRedis();
  const { stream } = queueKeys(name);
  await eventually(async () => (await redis.exists(stream)) === 1);
  // Dies twice with the message: its name says that it may be silent for a millisecond.
  for (const dead of [
    "0e8dd9a4-c2b5-4e0a-8d4e-000000000001",
    "0e8dd9a4-c2b5-4e0a-8d4e-000000000002",
  ]) {
    await eventually(async () => (await redis.xlen(stream)) === 1);
    const consumer = `delayline:1:9:host/1:${dead}`;
    await eventually(async () => {
      const read = await redis.xreadgroup(
        "GROUP",
        "default",
        consumer,
        "COUNT",
        1,
        "STREAMS",
        stream,
        ">",
      );
      return read !== null;
    });
    const reclaiming = newLine().getReliableQueue<number>(name, { leaseTimeout: 100 });
    const aborting = new AbortController();
    // From its first take on it looks for dead consumers; it may not have the message.
    await queue.pause();
    const taking = reclaiming.take({ signal: aborting.signal }).catch(() => {});
    await eventually(async () => (await inFlight(name)) === 0);
    aborting.abort();
    await taking;
    await queue.resume();
  }
  const batch = await queue.takeMany({ limit: 5, wait: HOUR });
  expect(batch.map(({ payload, attempt }) => [payload, attempt])).toEqual([[0, 3]]);
});

test("the handles of one consumer per key have no batches", () => {
  const queue = newLine().getReliableQueue(uniqueName("batch"), { exclusive: true, partitions: 2 });
  expect(() => queue.subscribeBatch(() => {}, { limit: 2, wait: 10 })).toThrow(TypeError);
});
