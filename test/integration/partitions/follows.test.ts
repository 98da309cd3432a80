import { expect, onTestFinished, test, vi } from "vitest";
import { OpenQueue } from "../../../src/partitions/open-queue.ts";
import { Group } from "../../../src/reliable/group/group.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { newServer } from "../../helpers/server.ts";

// A process that has opened a queue as an ordinary one follows when somebody gives it partitions.

const LONG = 60_000;

/** The partitions of a queue, as a client sees them through its own handle. */
const partitionsOf = async (queue: { stats(): Promise<{ perPartition: readonly unknown[] }> }) =>
  (await queue.stats()).perPartition.length;

test("a plain queue: waits go on, and messages are found wherever they are now", async () => {
  const name = uniqueName();
  const line = newLine();
  const [queue, ready] = [line.getDelayedQueue<string>(name), line.getBlockingQueue<string>(name)];
  await queue.offer("before", LONG, { key: "before" });
  const taking = ready.take();
  const other = newLine();
  await other.setPartitions(name, 3);
  await eventually(async () => (await partitionsOf(queue)) === 3);

  const partitioned = other.getDelayedQueue<string>(name, { partitions: 3 });
  await partitioned.offer("after", LONG, { key: "after" });
  expect((await queue.get("after"))?.payload).toBe("after");
  expect(await queue.cancel("before")).toBe(true);
  expect(await queue.cancel("after")).toBe(true);
  await partitioned.offer("taken", 1);
  expect(await taking).toBe("taken");

  await queue.offer("to a partition", LONG, { key: "k" });
  expect(await newRedis().exists(`redisson_delay_queue_timeout:{${name}}`)).toBe(0);
  expect((await partitioned.get("k"))?.payload).toBe("to a partition");
  await expect(ready.pollFromAny([uniqueName()])).rejects.toThrow(/partitioned/);
});

test("what is read only after a queue was given partitions is read there", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue<string>(name);
  await queue.offer("a", LONG, { key: "k:a" });
  const reads = [queue.find({ prefix: "k:" }), queue.soonest(), queue.insertionOrder];
  const other = newLine();
  await other.setPartitions(name, 2);
  await eventually(async () => (await partitionsOf(queue)) === 2);
  await other.getDelayedQueue<string>(name, { partitions: 2 }).offer("b", LONG, { key: "k:b" });
  for (const read of reads) {
    const found: string[] = [];
    for await (const { payload } of read) found.push(payload);
    expect(found.toSorted()).toEqual(["a", "b"]);
  }
});

test("a reliable queue: a take that is still creating its group goes on at the partitions", async () => {
  const name = uniqueName();
  const gate = new Gate();
  const { prepare } = Object.getOwnPropertyDescriptors(Group.prototype);
  // The first take is held as long as a slow server would hold it.
  const slow = vi.spyOn(Group.prototype, "prepare").mockImplementationOnce(async function (
    this: Group,
    call,
  ) {
    await prepare.value?.call(this, call);
    await gate.opened;
  });
  onTestFinished(() => slow.mockRestore());
  const [line, other] = [newLine(), newLine()];
  const queue = line.getReliableQueue<string>(name);
  const taken: string[] = [];
  queue.subscribe((payload) => void taken.push(payload));
  await eventually(() => slow.mock.calls.length === 1);
  await other.setPartitions(name, 2);
  await eventually(async () => (await partitionsOf(queue)) === 2);
  gate.open();
  await other.getReliableQueue<string>(name, { partitions: 2 }).offer("after", 0);
  await eventually(() => taken.length === 1);
});

test("a reliable queue: waits go on, and what was in flight is settled", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<string>(name);
  await queue.offer("in flight", 0);
  const delivery = await queue.take();
  const taken: string[] = [];
  queue.subscribe((payload) => void taken.push(payload), { concurrency: 2 });
  const other = newLine();
  const changing = other.setPartitions(name, 2);
  await eventually(async () => (await partitionsOf(queue)) >= 2);
  expect(await delivery.ack()).toBe(true);
  await changing;

  const partitioned = other.getReliableQueue<string>(name, { partitions: 2 });
  for (let i = 0; i < 10; i++) await partitioned.offer(`a ${i}`, 0);
  for (let i = 0; i < 10; i++) await queue.offer(`b ${i}`, 0);
  await eventually(() => taken.length === 20);
  expect(new Set(taken).size).toBe(20);
  expect(await newRedis().xlen(`delayline_stream:{${name}}`)).toBe(0);
});

test("a process that only waits for the first message of a queue follows, too", async () => {
  const [plain, reliable, unmoved] = [uniqueName(), uniqueName(), uniqueName()];
  const line = newLine();
  const taking = line.getBlockingQueue<string>(plain).take();
  const delivering = line.getReliableQueue<string>(reliable).take();
  const consuming = newLine({ transfer: false }).getBlockingQueue<string>(unmoved).take();
  // Wait until all three have subscribed and looked.
  const redis = newRedis();
  const channels = [plain, reliable, unmoved].map(
    (name) => `redisson_delay_queue_channel:{${name}}`,
  );
  await eventually(async () => {
    const counts = await redis.pubsub("NUMSUB", ...channels);
    expect(counts.filter((_, i) => i % 2 === 1)).toEqual([1, 1, 1]);
  });
  const partitions = 3;
  const other = newLine();
  await other.getDelayedQueue<string>(plain, { partitions }).offer("a", 0);
  await other.getReliableQueue<string>(reliable, { partitions }).offer("b", 0);
  await other.getDelayedQueue<string>(unmoved, { partitions }).offer("c", 0);
  expect(await taking).toBe("a");
  expect((await delivering).payload).toBe("b");
  expect(await consuming).toBe("c");
});

test("one client opens a queue first as an ordinary one, then with partitions", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getDelayedQueue<string>(name);
  await queue.offer("before", LONG, { key: "before" });
  const taking = line.getBlockingQueue<string>(name).take();
  const partitioned = line.getDelayedQueue<string>(name, { partitions: 4 });
  await partitioned.offer("after", LONG, { key: "after" });
  expect(await queue.size()).toBe(2);
  expect(await queue.cancel("after")).toBe(true);
  expect(await partitioned.cancel("before")).toBe(true);
  await queue.offer("taken", 1);
  expect(await taking).toBe("taken");
  await line.setPartitions(name, 4);
  expect(await partitionsOf(queue)).toBe(4);
});

test("what a process offered to the ordinary queue of a partitioned one moves to its partition", async () => {
  const name = uniqueName();
  const other = newLine();
  await other.getDelayedQueue<string>(name).offer("first", LONG);
  // It asks for partitions with its first offer, and then not for a while.
  const producer = newLine({ transfer: false }).getDelayedQueue<string>(name);
  await producer.cancel((await producer.offer("early", LONG)).id);
  await other.setPartitions(name, 2);
  const redis = newRedis();
  await producer.offer("late", LONG, { key: "k" });
  expect(await redis.zcard(`redisson_delay_queue_timeout:{${name}}`)).toBe(1);

  const queue = newLine().getDelayedQueue<string>(name);
  await eventually(
    async () => (await redis.exists(`redisson_delay_queue_timeout:{${name}}`)) === 0,
  );
  expect((await queue.get("k"))?.payload).toBe("late");
  expect(await queue.size()).toBe(2);
});

test("a paused queue stays paused, and is resumed by a process that follows", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getDelayedQueue<string>(name);
  const taking = line.getBlockingQueue<string>(name).take();
  await queue.offer("held", 0);
  await taking;
  await queue.pause();
  const next = line.getBlockingQueue<string>(name).take();
  await newLine().setPartitions(name, 2);
  await eventually(async () => (await partitionsOf(queue)) === 2);
  expect(await queue.isPaused()).toBe(true);
  await queue.offer("resumed", 0);
  await queue.resume();
  expect(await next).toBe("resumed");
});

test("a queue that has stopped learns of partitions, and attends no more", async () => {
  const redis = newRedis();
  const server = newServer();
  const names = [uniqueName(), uniqueName()];
  const [stopped, running] = names.map((name) => {
    const open = new OpenQueue(name, [server], { elements: "addresses", isPartitioned: false });
    open.startTransfer();
    return open;
  }) as [OpenQueue, OpenQueue];
  onTestFinished(async () => {
    for (const open of [stopped, running]) {
      await open.stopTaking();
      await open.close();
    }
    server.close();
  });
  await stopped.stopTaking();
  // The reply to a sweep may come that late.
  for (const open of [stopped, running]) open.parts.following.learn("1:2:2:stable:1");
  const listeners = async ({ parts }: OpenQueue) =>
    Number((await redis.pubsub("NUMSUB", parts.following.notice))[1]);
  await eventually(async () => (await listeners(running)) === 1);
  expect(await listeners(stopped)).toBe(0);
  expect(stopped.parts.following.fact?.to).toBe(2);
});

test("a look at a queue that is not open moves nothing", async () => {
  const name = uniqueName();
  // It asks for partitions with its first offer, and then not for a while.
  const line = newLine({ transfer: false });
  const queue = line.getDelayedQueue<string>(name);
  await queue.cancel((await queue.offer("early", LONG)).id);
  await newLine().getDelayedQueue<string>(name, { partitions: 2 }).offer("there", LONG);
  const redis = newRedis();
  const timeouts = `redisson_delay_queue_timeout:{${name}}`;
  await eventually(async () => (await redis.exists(`delayline_partitions:{${name}}`)) === 1);
  await queue.offer("late", LONG);
  const looking = newLine({ transfer: false });
  expect((await looking.stats(name)).perPartition).toHaveLength(2);
  expect(await looking.partitions(name)).toHaveLength(2);
  await looking.close();
  expect(await redis.zcard(timeouts)).toBe(1);
  // This one has offered, so it brings in what it left.
  expect((await line.stats(name)).perPartition).toHaveLength(2);
  await eventually(async () => (await redis.exists(timeouts)) === 0);
  expect(await queue.size()).toBe(2);
});

test("a cancelled message is not delivered, although a handler of the ordinary queue still runs", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<string>(name);
  const [running, done] = [new Gate(), new Gate()];
  const taken: string[] = [];
  queue.subscribe(async (payload) => {
    taken.push(payload);
    if (payload !== "long") return;
    running.open();
    await done.opened;
  });
  await queue.offer("long", 0);
  await running.opened;
  const { id } = await queue.offer("cancelled", 3000);
  const changing = newLine().setPartitions(name, 2);
  await eventually(async () => (await partitionsOf(queue)) >= 2);
  expect(await queue.cancel(id)).toBe(true);
  done.open();
  await changing;
  await queue.offer("last", 0);
  await eventually(() => taken.includes("last"));
  expect(taken).toEqual(["long", "last"]);
});

test("an exclusive handle without a number waits, and the ordinary queue goes on meanwhile", async () => {
  const name = uniqueName();
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<string>(name);
  const handled: string[] = [];
  const exclusive = line.getReliableQueue<string>(name, { exclusive: true });
  exclusive.subscribe((payload) => void handled.push(payload));
  await queue.offer("ordinary", 0);
  const delivery = await queue.take();
  expect(delivery.payload).toBe("ordinary");
  expect(await delivery.ack()).toBe(true);
  await newLine().setPartitions(name, 2);
  await eventually(async () => (await partitionsOf(queue)) === 2);
  await exclusive.offer("exclusive", 0);
  await eventually(() => handled.length === 1);
  // At most one report that it waits.
  expect(line.errors.filter(({ code }) => code !== "WRONG_HANDLE")).toEqual([]);
});

test("polls together with a queue that gets partitions end with the reason", async () => {
  const [one, other] = [uniqueName(), uniqueName()];
  const line = newLine();
  const ready = line.getBlockingQueue<string>(one);
  const polling = ready.pollFromAny([other], 60_000);
  const failing = expect(polling).rejects.toThrow(/is partitioned: it cannot be polled/);
  await line.getDelayedQueue<string>(other).offer("x", LONG);
  await newLine().setPartitions(other, 2);
  await failing;
});

test("a consumer that may not read the fact takes nevertheless", async () => {
  const name = uniqueName();
  const redis = newRedis();
  await redis.rpush(`delayline_partitions:{${name}}`, "of another type");
  const ready = newLine({ transfer: false }).getBlockingQueue<string>(name);
  await ready.put("ready");
  expect(await ready.poll(10_000)).toBe("ready");
});

test("while a process leaves the ordinary queue, it finds by key what it has left there", async () => {
  const name = uniqueName();
  await newLine().getDelayedQueue<string>(name, { partitions: 2 }).offer("there", LONG);
  const redis = newRedis();
  await eventually(async () => (await redis.exists(`delayline_partitions:{${name}}`)) === 1);
  const line = newLine({ transfer: false });
  const queue = line.getDelayedQueue<string>(name);
  const keys = Array.from({ length: 1000 }, (_, i) => `key ${i}`);
  await queue.offerMany(keys.map((key) => ({ payload: key, delay: LONG, key })));
  // This tells the client of the partitions.
  await line.stats(name);
  expect((await queue.cancelMany(keys)).filter((flag) => !flag)).toEqual([]);
  expect(await queue.size()).toBe(1);
});

test("a process that leaves the ordinary queue goes on with it if that becomes a part again", async () => {
  const name = uniqueName();
  const owner = newLine();
  await owner.getDelayedQueue<string>(name).offer("first", LONG);
  // It asks for partitions with its first offer, and then not for a while.
  const line = newLine({ transfer: false });
  const queue = line.getDelayedQueue<string>(name);
  await queue.cancel((await queue.offer("early", LONG)).id);
  await owner.setPartitions(name, 2);
  await queue.offer("late", LONG, { key: "k" });
  // Another process has begun to take the ordinary queue in. This one still learns the fact before that.
  await newRedis().set(`delayline_partitions:{${name}}`, "3:2:0:moving:1");
  await line.stats(name);
  await eventually(async () => (await partitionsOf(queue)) === 3);
  await owner.setPartitions(name, 2);
  expect((await queue.get("k"))?.payload).toBe("late");
  expect(await queue.size()).toBe(2);
});

test("a process that only offers follows: what it offered before is handled, and a key is not stored twice", async () => {
  const name = uniqueName();
  const owner = newLine();
  await owner.getDelayedQueue(name, { partitions: 2 }).offer("one", 60_000, { key: "k" });
  const producer = newLine({ transfer: false }).getDelayedQueue(name);
  await producer.offer("first", 0);
  expect(await owner.getBlockingQueue(name).poll(10_000)).toBe("first");
  expect(await producer.offer("two", 60_000, { key: "k" })).toMatchObject({ outcome: "existing" });
});
