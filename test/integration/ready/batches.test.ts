import type { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { partitionName } from "../../../src/partitions/ring/ring.ts";
import type { BlockingQueue } from "../../../src/index.ts";
import { someoneWaits } from "../../helpers/blocked.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { upTo } from "../../helpers/numbers.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/** Batches of a plain queue that wait to fill up. */

const HOUR = 3_600_000;

let redis: Redis;
let name: string;
let line: TestLine;
let queue: BlockingQueue<number>;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("batch");
  line = newLine();
  queue = line.getBlockingQueue<number>(name);
});

/** Puts a message, and resolves when it has left Redis. */
async function putAndTaken(payload: number): Promise<void> {
  await queue.put(payload);
  await eventually(async () => (await queue.size()) === 0);
}

test("takeMany waits from the first message on until the batch is full", async () => {
  const taking = queue.takeMany({ limit: 3, wait: HOUR });
  await putAndTaken(0);
  await putAndTaken(1);
  await queue.put(2);
  expect(await taking).toEqual([0, 1, 2]);
  expect(queue.counters.taken).toBe(3);
});

test("takeMany returns what there is when the time is over", async () => {
  await queue.putMany([0, 1]);
  expect(await queue.takeMany({ limit: 3, timeout: 0, wait: 30 })).toEqual([0, 1]);
  expect(await queue.takeMany({ limit: 3, timeout: 0, wait: HOUR })).toEqual([]);
  expect(await queue.takeMany({ limit: 3, timeout: 10, wait: HOUR })).toEqual([]);
});

test("an aborted takeMany puts all back in order, and counts none as taken", async () => {
  const aborting = new AbortController();
  const taking = queue.takeMany({ limit: 4, wait: HOUR, signal: aborting.signal });
  await putAndTaken(0);
  await putAndTaken(1);
  await queue.pause();
  await queue.put(2);
  aborting.abort(new Error("enough"));
  await expect(taking).rejects.toThrow("enough");
  await eventually(async () => (await queue.size()) === 3);
  expect(await queue.readAll()).toEqual([0, 1, 2]);
  expect(queue.counters.taken).toBe(0);
});

test("what an aborted takeMany has popped without waiting goes back as well", async () => {
  const aborting = new AbortController();
  await queue.putMany([0, 1]);
  const taking = queue.takeMany({ limit: 4, timeout: 0, wait: HOUR, signal: aborting.signal });
  await someoneWaits(redis, name);
  aborting.abort(new Error("enough"));
  await expect(taking).rejects.toThrow("enough");
  await eventually(async () => (await queue.size()) === 2);
  expect(await queue.readAll()).toEqual([0, 1]);
});

test("closing the client returns what a takeMany has: it has left Redis", async () => {
  const taking = queue.takeMany({ limit: 3, wait: HOUR });
  await putAndTaken(0);
  await line.close();
  expect(await taking).toEqual([0]);
});

test("if Redis refuses to give more, takeMany returns what there is", async () => {
  const taking = queue.takeMany({ limit: 3, wait: HOUR });
  await putAndTaken(0);
  await someoneWaits(redis, name);
  await redis.set(name, "no list");
  expect(await taking).toEqual([0]);
  await redis.del(name);
});

test("a lost connection ends no batch", async () => {
  const { url } = await startOwnServer();
  const own = newLineThatMayFail({ redis: url });
  const there = own.getBlockingQueue<number>(name);
  const taking = there.takeMany({ limit: 2, wait: HOUR });
  await there.put(0);
  await eventually(async () => (await there.size()) === 0);
  const client = newRedis(url);
  await someoneWaits(client, name);
  await client.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await there.put(1);
  expect(await taking).toEqual([0, 1]);
});

test("a handler of batches gets full ones, and what there is when the time is over", async () => {
  const batches: (readonly number[])[] = [];
  const subscription = queue.subscribeBatch((payloads) => void batches.push(payloads), {
    limit: 3,
    wait: 500,
  });
  for (const i of upTo(4)) await putAndTaken(i);
  await eventually(() => batches.length === 2);
  expect(batches).toEqual([[0, 1, 2], [3]]);
  expect(queue.counters.taken).toBe(4);
  await subscription.close();
});

test("without a wait a handler gets what is there", async () => {
  await queue.putMany(upTo(5));
  const batches: (readonly number[])[] = [];
  queue.subscribeBatch((payloads) => void batches.push(payloads), { limit: 3 });
  await eventually(() => batches.flat().length === 5);
  expect(batches.flat()).toEqual(upTo(5));
  expect(batches[0]).toEqual([0, 1, 2]);
});

test("many handlers fill their batches one by one", async () => {
  const batches: (readonly number[])[] = [];
  const mayEnd = new Gate();
  queue.subscribeBatch(
    async (payloads) => {
      batches.push(payloads);
      await mayEnd.opened;
    },
    { limit: 4, wait: HOUR, concurrency: 2 },
  );
  for (const i of upTo(8)) await putAndTaken(i);
  await eventually(() => batches.length === 2);
  expect(batches).toEqual([
    [0, 1, 2, 3],
    [4, 5, 6, 7],
  ]);
  mayEnd.open();
});

test("what a handler of batches threw is told once, with the payloads", async () => {
  const told: unknown[] = [];
  const subscription = queue.subscribeBatch(
    () => {
      throw new Error("no");
    },
    { limit: 2, onError: (error, payloads) => void told.push(error, payloads) },
  );
  await queue.putMany([0, 1]);
  await eventually(() => told.length > 0);
  expect(told).toEqual([new Error("no"), [0, 1]]);
  expect(queue.counters.failed).toBe(1);
  await subscription.close();
});

test.each(["the subscription", "the client"])(
  "when %s closes, what waits in a batch is put back before that resolves",
  async (what) => {
    let calls = 0;
    const subscription = queue.subscribeBatch(() => void calls++, { limit: 3, wait: HOUR });
    await putAndTaken(0);
    await putAndTaken(1);
    await (what === "the client" ? line.close() : subscription.close());
    expect(await redis.llen(name)).toBe(2);
    expect(await newLine().getBlockingQueue(name).readAll()).toEqual([0, 1]);
    expect(calls).toBe(0);
  },
);

test("what a codec cannot read is left out of a batch", async () => {
  const own = newLineThatMayFail();
  const there = own.getBlockingQueue<number>(name);
  const batches: (readonly number[])[] = [];
  there.subscribeBatch((payloads) => void batches.push(payloads), { limit: 3, wait: HOUR });
  // 1, a fraction without its bytes, and 3.
  await redis.rpush(name, "\u0001", Buffer.from([0xcb]), "\u0003");
  await eventually(() => batches.length === 1);
  expect(batches).toEqual([[1, 3]]);
  expect(own.errors).toHaveLength(1);
  expect((await there.stats()).quarantined).toBe(1);
});

test("with partitions, an aborted batch goes back to each", async () => {
  const parts = line.getBlockingQueue<number>(name, { partitions: 3 });
  await parts.putMany(upTo(6));
  const aborting = new AbortController();
  const taking = parts.takeMany({ limit: 9, wait: HOUR, signal: aborting.signal });
  await eventually(async () => (await parts.size()) === 0);
  aborting.abort(new Error("enough"));
  await expect(taking).rejects.toThrow("enough");
  await eventually(async () => (await parts.size()) === 6);
  expect((await parts.readAll()).toSorted((a, b) => a - b)).toEqual(upTo(6));
});

test("what waits in a batch while its partition is removed is put behind the others", async () => {
  const parts = line.getBlockingQueue<number>(name, { partitions: 3 });
  await parts.putMany(upTo(6));
  const aborting = new AbortController();
  const taking = parts.takeMany({ limit: 9, wait: HOUR, signal: aborting.signal });
  await eventually(async () => (await parts.size()) === 0);
  await line.setPartitions(name, 1);
  await eventually(async () => (await line.partitions(name)).length === 1);
  aborting.abort(new Error("enough"));
  await expect(taking).rejects.toThrow("enough");
  const left = partitionName(name, 0);
  await eventually(async () => (await redis.llen(left)) === 6);
  expect((await parts.readAll()).toSorted((a, b) => a - b)).toEqual(upTo(6));
});
