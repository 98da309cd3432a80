import { expect, test } from "vitest";
import { guarded } from "../../../src/lua/guarded.ts";
import { pullOut } from "../../../src/lua/partitions/pull-out.ts";
import { pushIn } from "../../../src/lua/partitions/push-in.ts";
import { run } from "../../../src/lua/script.ts";
import { ClosedError } from "../../../src/index.ts";
import { partitionName, tableOf } from "../../../src/partitions/ring/ring.ts";
import { bucketOfKey } from "../../../src/queue/message/bucket.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { expectEachOnce } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";

/* Single moments of a change of the number of partitions, held still. */

const MINUTE = 60_000;
const MOVING = "2:8:2:moving:1";

/** A key that belongs to partition 0 of 2, and to another one of 8. */
const key = upTo(100)
  .map((i) => `key ${i}`)
  .find((one) => {
    const bucket = bucketOfKey(one);
    return tableOf(2)[bucket] === 0 && (tableOf(8)[bucket] ?? 0) > 1;
  }) as string;

const keysOf = (name: string, partition: number): QueueKeys =>
  queueKeys(partitionName(name, partition));

/** A queue in two partitions. The process that changes their number to 8 has died. */
async function newMovingQueue() {
  const name = uniqueName();
  const redis = newRedis();
  // This client knows of two partitions only.
  const old = newLine({ transfer: false }).getDelayedQueue<number>(name, { partitions: 2 });
  await old.size();
  const begin = async () => redis.set(keysOf(name, 0).partitions, MOVING);
  /** Takes the messages with these keys out of partition 0, as a process that then dies. */
  const pull = async (...keys: string[]) => {
    const args = { own: 0, buckets: Buffer.from(tableOf(8)), knownFact: MOVING, ofPartition: 0 };
    const rows = keys.map((one) => ({ id: "", key: one, member: "" }));
    const batch = await run(redis, guarded(pullOut), keysOf(name, 0), args, rows);
    expect(batch.rows).toHaveLength(keys.length);
    return batch;
  };
  const other = newLine({ transfer: false }).getDelayedQueue<number>(name, { partitions: 5 });
  return { name, redis, old, other, begin, pull };
}

for (const who of ["old", "other"] as const) {
  test(`an offer finds its key's message while that is moving (${who})`, async () => {
    const queue = await newMovingQueue();
    const first = await queue.old.offer(1, MINUTE, { key });
    await queue.begin();
    await queue.pull(key);
    expect(await queue[who].offer(2, MINUTE, { key, onDuplicate: "ignore" })).toMatchObject({
      outcome: "existing",
      id: first.id,
    });
    expect(await queue[who].offer(3, MINUTE, { key, onDuplicate: "replace" })).toMatchObject({
      outcome: "replaced",
    });
    expect(await queue.other.insertionOrder.readAll()).toEqual([3]);
  });

  test(`a message that is moving is rescheduled and cancelled once (${who})`, async () => {
    const queue = await newMovingQueue();
    const { id } = await queue.old.offer(1, MINUTE, { key });
    await queue.begin();
    await queue.pull(key);
    expect(await queue[who].get(id)).toMatchObject({ payload: 1 });
    const later = await queue[who].reschedule(key, 2 * MINUTE);
    expect(later).toBeDefined();
    expect(await Promise.all([1, 2].map(() => queue[who].cancel(key)))).toContain(true);
    expect(await queue[who].cancel(key)).toBe(false);
    expect(await queue.other.size()).toBe(0);
  });
}

test.each([
  { meanwhile: "nothing else", others: [] },
  { meanwhile: "others collect behind it", others: ["d", "e"] },
])(
  "an offer that collects is sent again after its message has moved, $meanwhile: it is known",
  async ({ others }) => {
    const name = uniqueName();
    const proxy = await startProxy(redisUrl());
    const open = (redis: string) =>
      newLine({ redis, codec: "string", transfer: false }).getReliableQueue<string>(name, {
        partitions: 2,
      });
    const [queue, other] = [open(proxy.url), open(redisUrl())];
    const collecting = { key, onDuplicate: "collect" } as const;
    await queue.offer("a", MINUTE, collecting);
    await other.offer("b", MINUTE, collecting);
    const lost = proxy.loseReplyTo("the payload c", "swallow");
    const offering = queue.offer("the payload c", MINUTE, collecting);
    const connection = await lost;
    await newLine().setPartitions(name, 8);
    for (const payload of others) await other.offer(payload, MINUTE, collecting);
    connection.cut();
    expect(await offering).toMatchObject({ outcome: "collected" });
    const payloads = ["a", "b", "the payload c", ...others];
    expect(await other.get(key)).toMatchObject({ payloads });
    expect(await queue.size()).toBe(1);
  },
);

test("a batch that had arrived when its process died is not moved twice", async () => {
  const { name, redis, old, begin, pull } = await newMovingQueue();
  await old.offer(1, 300, { key });
  await begin();
  const { number, rows } = await pull(key);
  const keys = keysOf(name, rows[0]?.to as number);
  const ofPartition = rows[0]?.to as number;
  const args = { channel: keys.channel, source: 0, number, knownFact: MOVING, ofPartition };
  await run(redis, guarded(pushIn), keys, args, rows);
  const line = newLine();
  const ready = line.getBlockingQueue<number>(name, { partitions: 2 });
  expect(await ready.take()).toBe(1);
  await line.setPartitions(name, 8);
  expect(await old.size()).toBe(0);
  expect(await ready.size()).toBe(0);
});

test("an unordered search finds moving messages, once", async () => {
  const queue = await newMovingQueue();
  const keys = upTo(200).map((i) => `n:${i}`);
  await queue.old.offerMany(keys.map((one, i) => ({ payload: i, delay: MINUTE, key: one })));
  await queue.begin();
  await queue.pull(
    ...keys.filter((one) => {
      const bucket = bucketOfKey(one);
      return tableOf(2)[bucket] === 0 && tableOf(8)[bucket] !== 0;
    }),
  );
  const found: string[] = [];
  for await (const message of queue.other.find({ prefix: "n:" })) found.push(message.key as string);
  expectEachOnce(keys, found);
  expect(await queue.other.cancelWhere({ prefix: "n:" })).toMatchObject({ count: 200 });
  expect(await queue.other.size()).toBe(0);
});

test("two clients change the number at once: both resolve, one number holds, nothing is lost", async () => {
  const name = uniqueName();
  const [one, other] = [newLine(), newLine()];
  const queue = one.getDelayedQueue<number>(name, { partitions: 2 });
  await queue.offerMany(upTo(500).map((payload) => ({ payload, delay: MINUTE })));
  await Promise.all([one.setPartitions(name, 5), other.setPartitions(name, 7)]);
  expect([5, 7]).toContain((await one.partitions(name)).length);
  expectEachOnce(upTo(500), await queue.insertionOrder.readAll());
});

test("an aborted change is finished by the next call", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getDelayedQueue<number>(name, { partitions: 2 });
  await queue.offerMany(upTo(2000).map((payload) => ({ payload, delay: MINUTE })));
  const stopping = new AbortController();
  const onProgress = () => stopping.abort(new Error("enough"));
  const { signal } = stopping;
  await expect(line.setPartitions(name, 8, { signal, onProgress })).rejects.toThrow("enough");
  expect(await queue.size()).toBeGreaterThanOrEqual(1900);
  await newLine().setPartitions(name, 8);
  expectEachOnce(upTo(2000), await queue.insertionOrder.readAll());
});

test("a client closed during a change loses nothing", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue<number>(name, { partitions: 2 });
  await queue.offerMany(upTo(2000).map((payload) => ({ payload, delay: MINUTE })));
  const line = newLine();
  let closing: Promise<void> | undefined;
  const onProgress = () => {
    closing ??= line.close();
  };
  await expect(line.setPartitions(name, 8, { onProgress })).rejects.toThrow(ClosedError);
  await closing;
  await newLine().setPartitions(name, 8);
  expectEachOnce(upTo(2000), await queue.insertionOrder.readAll());
});

test("a client with an old number learns the new one, and returns the same results as the others", async () => {
  const name = uniqueName();
  const old = newLine({ transfer: false });
  const queue = old.getDelayedQueue<number>(name, { partitions: 8 });
  const ready = old.getBlockingQueue<number>(name, { partitions: 8, transfer: false });
  const offered = await queue.offerMany(
    upTo(100).map((payload) => ({ payload, delay: MINUTE, key: `k${payload}` })),
  );
  const line = newLine({ transfer: false });
  const change = (count: number) => line.setPartitions(name, count);
  const here = line.getDelayedQueue<number>(name, { partitions: 8 });
  await change(16);
  expect(await queue.size()).toBe(100);
  expect((await queue.insertionOrder.readAll()).length).toBe(100);
  expect(await queue.cancel(offered[0]?.id as string)).toBe(true);
  await change(2);
  expect(await queue.reschedule("k1", 2 * MINUTE)).toBeDefined();
  await change(7);
  expect(await queue.offer(200, MINUTE, { key: "k2" })).toMatchObject({ outcome: "existing" });
  await change(3);
  expect((await queue.insertionOrder.readAll()).length).toBe(99);
  await change(8);
  await ready.putMany(upTo(20));
  await change(1);
  await ready.putMany(upTo(20));
  expect(await ready.size()).toBe(40);
  expect(await line.getBlockingQueue(name, { partitions: 1, transfer: false }).size()).toBe(40);
  expect(await here.clear()).toBe(99);
});

test("an iteration continues while its partition disappears", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getDelayedQueue<number>(name, { partitions: 8 });
  // Read in pages: one page of each partition has been read.
  const large = line.getDelayedQueue<string>(`${name}-large`, { partitions: 2 });
  await large.offerMany(upTo(40).map((i) => ({ payload: `${i}`.repeat(50_000), delay: MINUTE })));
  const redis = newRedis();
  let read = 0;
  for await (const message of large.insertionOrder) {
    expect(message).toBeDefined();
    if (read++ > 0) continue;
    await line.setPartitions(`${name}-large`, 1);
    await eventually(async () => {
      expect(await redis.exists(keysOf(`${name}-large`, 1).order)).toBe(0);
    });
  }
  await queue.offerMany(
    upTo(400).map((payload) => ({ payload, delay: MINUTE, key: `n:${payload}` })),
  );
  const found: (string | undefined)[] = [];
  for await (const message of queue.find({ prefix: "n:" })) {
    if (found.length === 0) await line.setPartitions(name, 1);
    found.push(message.key);
  }
  expectEachOnce(
    upTo(400).map((i) => `n:${i}`),
    found,
  );
});

test("a message that returns to its partition is read once", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getDelayedQueue<number>(name, { partitions: 2 });
  await queue.offerMany(upTo(300).map((payload) => ({ payload, delay: MINUTE })));
  for (const count of [8, 3, 8, 2]) await line.setPartitions(name, count);
  expectEachOnce(upTo(300), await queue.insertionOrder.readAll());
  expect(await queue.size()).toBe(300);
  expect(await queue.clear()).toBe(300);
});

test("new partitions are paused like the others, whatever they were before", async () => {
  const name = uniqueName();
  const line = newLine();
  const ready = line.getBlockingQueue<number>(name, { partitions: 2 });
  const redis = newRedis();
  const paused = async () => {
    const parts = await line.partitions(name);
    const flags = parts.map((_, partition) => redis.exists(keysOf(name, partition).paused));
    return (await Promise.all(flags)).join("");
  };
  await ready.pause();
  await line.setPartitions(name, 4);
  expect(await paused()).toBe("1111");
  // A partition that was never tidied up.
  await line.setPartitions(name, 2);
  await redis.set(keysOf(name, 3).paused, "1");
  await ready.resume();
  await line.setPartitions(name, 4);
  expect(await paused()).toBe("0000");
});

test("groups exist before anything is ready in a new partition", async () => {
  const name = uniqueName();
  const line = newLine({ transfer: false });
  for (const group of ["a", "b"]) {
    await line.getReliableQueue(name, { partitions: 1, group }).offer(1, MINUTE);
  }
  const changer = newLine({ transfer: false });
  await changer.setPartitions(name, 3);
  const redis = newRedis();
  for (const partition of [1, 2]) {
    const { stream } = keysOf(name, partition);
    const groups = (await redis.xinfo("GROUPS", stream)) as string[][];
    expect(groups.map((group) => group[1])).toEqual(["a", "b"]);
  }
});

test("a message that a dead process gave back to a removed partition is found by the next call", async () => {
  const name = uniqueName();
  const line = newLine({ codec: "string" });
  await line.getDelayedQueue(name, { partitions: 8 }).size();
  await line.setPartitions(name, 2);
  const redis = newRedis();
  await redis.rpush(keysOf(name, 6).ready, "left behind");
  await newLine({ transfer: false }).setPartitions(name, 2);
  expect(await line.getBlockingQueue(name, { partitions: 2 }).take()).toBe("left behind");
});

test("no client subscribes to a partition that has gone", async () => {
  const name = uniqueName();
  const line = newLine();
  const redis = newRedis();
  const queue = line.getDelayedQueue<number>(name, { partitions: 4 });
  const taken: number[] = [];
  line.getBlockingQueue<number>(name, { partitions: 4 }).subscribe((payload) => {
    taken.push(payload);
  });
  await queue.offerMany(upTo(40).map((payload) => ({ payload, delay: 50 })));
  await eventually(() => taken.length === 40);
  await line.setPartitions(name, 1);
  const channels = async () => await redis.pubsub("CHANNELS", `*{${name}/[123]/*`);
  await eventually(async () => expect(await channels()).toEqual([]));
});

test("a lost or invalid fact is written again", async () => {
  const name = uniqueName();
  const line = newLine();
  const redis = newRedis();
  const queue = line.getDelayedQueue<number>(name, { partitions: 2 });
  const { id } = await queue.offer(1, MINUTE, { key });
  await redis.del(keysOf(name, 0).partitions, keysOf(name, 1).partitions);
  await line.setPartitions(name, 4);
  expect(await queue.get(id)).toMatchObject({ payload: 1 });
  for (const fact of ["nonsense", "999999:nonsense", "999999:0:0:none:1:1"]) {
    for (const partition of upTo(4)) await redis.set(keysOf(name, partition).partitions, fact);
    expect(await queue.get(key)).toMatchObject({ payload: 1 });
    expect((await line.partitions(name)).length).toBe(4);
  }
});

test("one of two callers that ask for the number may leave", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue<number>(name, { partitions: 2 });
  const leaving = AbortSignal.abort(new Error("left"));
  const [one, other] = await Promise.allSettled([queue.size({ signal: leaving }), queue.size()]);
  expect([one.status, other.status]).toEqual(["rejected", "fulfilled"]);
});

test("all partitions and many calls may listen to a signal at once", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on("warning", note);
  const name = uniqueName();
  const line = newLine();
  const queue = line.getDelayedQueue<number>(name, { partitions: 16 });
  const { signal } = new AbortController();
  await queue.size({ signal });
  await queue.cancel("nothing", { signal });
  const payloads = Array.from({ length: 12 }, (_, n) => ({
    payload: n,
    delay: 60_000,
    key: `${n}`,
  }));
  await queue.offerMany(payloads, { signal });
  await Promise.all(payloads.map((offered) => queue.get(offered.key, { signal })));
  await queue.clear({ signal });
  await line.setPartitions(name, 1, { signal });
  await eventually(async () => (await line.partitions(name)).length === 1);
  process.off("warning", note);
  expect(warnings).toEqual([]);
});
