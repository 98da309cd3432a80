import { beforeEach, expect, test } from "vitest";
import { PartitionNames } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { offerAsRedisson } from "../../helpers/redisson.ts";
import { upTo, ascending } from "../../helpers/numbers.ts";

const LONG = 3_600_000;
const partitions = 4;
let name: string;

beforeEach(() => {
  name = uniqueName("ordinary");
});

/** The existing partitions; -1 is the ordinary queue. */
async function numbersOf(line = newLine({ transfer: false })): Promise<number[]> {
  return (await line.partitions(name)).map(({ partition }) => partition);
}

test("a plain queue in use gets partitions: nothing is lost or duplicated, and keys stay exact", async () => {
  const old = newLine();
  const before = old.getDelayedQueue<number>(name);
  await before.offerMany(upTo(300).map((i) => ({ payload: i, delay: LONG, key: `k${i}` })));
  await before.offerMany(upTo(100).map((i) => ({ payload: 300 + i, delay: 100 })));
  await old.getBlockingQueue<number>(name).putMany(upTo(100).map((i) => 400 + i));
  const taken: number[] = [];
  old.getBlockingQueue<number>(name).subscribe((n) => void taken.push(n), { concurrency: 2 });

  const line = newLine();
  const queue = line.getDelayedQueue<number>(name, { partitions });
  const subscription = line
    .getBlockingQueue<number>(name, { partitions })
    .subscribe((n) => void taken.push(n), { concurrency: 2 });
  expect(await queue.size()).toBeGreaterThanOrEqual(300);
  expect(await numbersOf()).toEqual([-1, 0, 1, 2, 3]);
  // Both queues offer, but only the new one cancels.
  const bothOffer = upTo(100).map(async (i) => {
    await before.offer(500 + i, i, { key: `old${i}` });
    await queue.offer(600 + i, i, { key: `new${i}` });
  });
  const verdicts = await queue.cancelMany(upTo(100).map((i) => `k${i}`));
  expect(verdicts).not.toContain(false);
  expect(await queue.cancelMany(["k0", "k99"])).toEqual([false, false]);
  expect(await queue.offer(-1, 0, { key: "k100" })).toMatchObject({ outcome: "existing" });
  expect(await queue.offer(700, 0, { key: "k101", onDuplicate: "replace" })).toMatchObject({
    outcome: "replaced",
  });
  await Promise.all(bothOffer);
  await eventually(() => taken.length === 401);

  await before.offer(800, LONG, { key: "last" });
  await old.close();
  await line.setPartitions(name, partitions);
  expect(await numbersOf()).toEqual([0, 1, 2, 3]);
  expect(await queue.size()).toBe(200);
  await queue.promote("last");
  await eventually(() => taken.length === 402);
  await subscription.close();
  expect(ascending(taken)).toEqual(ascending([...upTo(401).map((i) => 300 + i), 800]));
  const rest = await collect(queue.find({ prefix: "k" }));
  const left = [100, ...upTo(198).map((i) => 102 + i)];
  expect(ascending(rest.map(({ payload }) => payload))).toEqual(left);
});

test("a reliable queue gets partitions: retries, messages in flight, dead letters and groups stay", async () => {
  const old = newLine();
  const options = { retry: [LONG], maxAttempts: 2 };
  const before = old.getReliableQueue<string>(name, options);
  const audit = old.getReliableQueue<string>(name, { ...options, group: "audit" });
  expect(await audit.poll(1)).toBeUndefined();
  await before.offer("retrying", 0);
  const retrying = await before.take();
  await retrying.nack();
  await before.offer("dead", 0);
  await (await before.take()).reject();
  await before.offer("in flight", 0);
  const inFlight = await before.take();
  await before.offer("delayed", LONG, { key: "k" });
  await Promise.all(upTo(3).map(() => audit.take()));

  const line = newLine();
  // A handle that only offers, and knows nothing of the groups.
  const producer = line.getDelayedQueue<string>(name, { partitions });
  await producer.offerMany(upTo(20).map((i) => ({ payload: `new ${i}`, delay: 0 })));
  const queue = line.getReliableQueue<string>(name, { ...options, partitions });
  expect(await queue.get(retrying.id)).toMatchObject({ payload: "retrying" });
  expect(await queue.deadLetters.size()).toBe(1);
  const changing = line.setPartitions(name, partitions);
  let isChanged = false;
  void changing.then(() => (isChanged = true));
  await eventually(async () => (await line.partitions(name))[0]?.delayed === 0);
  // A living process holds it.
  expect(isChanged).toBe(false);
  expect(await inFlight.ack()).toBe(true);
  await old.close();
  await changing;
  expect(await numbersOf()).toEqual([0, 1, 2, 3]);
  expect(await queue.cancel("k")).toBe(true);
  expect(await queue.promote(retrying.id)).toMatchObject({ id: retrying.id });
  const seen: string[] = [];
  queue.subscribe((payload) => void seen.push(payload), { concurrency: 5 });
  await eventually(() => seen.length === 21);
  expect(seen.toSorted()).toEqual(["retrying", ...upTo(20).map((i) => `new ${i}`)].toSorted());
  expect(await queue.deadLetters.redrive("all")).toBe(1);
  await eventually(() => seen.includes("dead"));
  // The other group has missed nothing.
  const audited: string[] = [];
  const auditor = line.getReliableQueue<string>(name, { ...options, partitions, group: "audit" });
  auditor.subscribe((payload) => void audited.push(payload), { concurrency: 5 });
  await eventually(() => audited.length === 23);
  expect(new Set(audited).size).toBe(23);
});

test("an ordinary queue in use stays a part, for processes without partitions and for Java", async () => {
  const old = newLine({ transfer: false, codec: "json" });
  const before = old.getDelayedQueue<string>(name);
  await before.offer("first", LONG, { key: "first" });
  const line = newLine({ codec: "json" });
  const queue = line.getDelayedQueue<string>(name, { partitions });
  expect(await queue.cancel("first")).toBe(true);
  expect(await numbersOf()).toEqual([-1, 0, 1, 2, 3]);
  const ready = line.getBlockingQueue<string>(name, { partitions });
  const taking = ready.take();
  await before.offer("due", 0);
  expect(await taking).toBe("due");
  // Java's services offer there, too. Their ids name no bucket.
  await offerAsRedisson(newRedis(), name, JSON.stringify("java"), 20);
  expect(await ready.take()).toBe("java");
  await offerAsRedisson(newRedis(), name, JSON.stringify("java, later"), LONG);
  await before.offer("mine", LONG, { key: "mine" });
  await before.offer("yours", LONG, { key: "yours" });
  // Clients without partitions still find their messages.
  expect(await before.cancel("mine")).toBe(true);
  expect(await queue.cancel("mine")).toBe(false);
  expect(await queue.cancel("yours")).toBe(true);
  expect(await before.cancel("yours")).toBe(false);
  await line.setPartitions(name, partitions);
  expect(await numbersOf()).toEqual([0, 1, 2, 3]);
  const [java] = await collect(queue.insertionOrder);
  expect(java?.payload).toBe("java, later");
  expect(await queue.cancel(java?.id ?? "")).toBe(true);

  // A forgotten client's messages are not lost.
  await before.offer("late", LONG, { key: "late" });
  await old.getBlockingQueue<string>(name).put("ready late");
  expect(await queue.cancel("late")).toBe(false);
  const progress: number[] = [];
  await line.setPartitions(name, partitions, { onProgress: ({ moved }) => progress.push(moved) });
  expect(progress.at(-1)).toBe(2);
  expect(await ready.take()).toBe("ready late");
  expect(await queue.cancel("late")).toBe(true);
  expect(await numbersOf()).toEqual([0, 1, 2, 3]);
});

test("a paused queue stays paused, and one that was resumed is not paused again", async () => {
  const old = newLine({ transfer: false }).getDelayedQueue<string>(name);
  await old.offer("a", 0);
  await old.pause();
  const line = newLine();
  const queue = line.getDelayedQueue<string>(name, { partitions });
  const ready = line.getBlockingQueue<string>(name, { partitions });
  await queue.offer("b", 0);
  expect(await ready.poll(30)).toBeUndefined();
  await line.setPartitions(name, 2);
  expect(await queue.isPaused()).toBe(true);
  await queue.resume();
  await line.setPartitions(name, 8);
  expect(await queue.isPaused()).toBe(false);
  expect([await ready.take(), await ready.take()].toSorted()).toEqual(["a", "b"]);
});

test("a new queue adopts nothing, and one partition is the minimum", async () => {
  // Not a queue, but another program's key.
  await newRedis().set(name, "text");
  const line = newLine();
  const queue = line.getDelayedQueue<string>(name, { partitions });
  await queue.offer("a", LONG, { key: "k" });
  expect(await numbersOf()).toEqual([0, 1, 2, 3]);
  await line.setPartitions(name, 1);
  expect(await numbersOf()).toEqual([0]);
  expect(await queue.cancel("k")).toBe(true);
});

test("two clients want different numbers, and each number holds once", async () => {
  const lines = [newLine({ transfer: false }), newLine({ transfer: false })] as const;
  const queue = lines[0].getDelayedQueue<number>(name, { partitions: 2 });
  await queue.offerMany(upTo(500).map((payload) => ({ payload, delay: LONG })));
  await Promise.all([lines[0].setPartitions(name, 8), lines[1].setPartitions(name, 3)]);
  const fact = await newRedis().get(queueKeys(new PartitionNames(name).at(0)).partitions);
  // The first fact, and two more for each change.
  expect(fact).toMatch(/^5:[83]:[83]:stable:1$/);
  expect(await queue.size()).toBe(500);
});

test("a change of the number also takes in what was left in the ordinary queue", async () => {
  const line = newLine({ codec: "json" });
  const queue = line.getDelayedQueue<string>(name, { partitions: 2 });
  await queue.offer("there", LONG);
  const redis = newRedis();
  await offerAsRedisson(redis, name, JSON.stringify("left"), LONG);
  await line.setPartitions(name, 3);
  expect(await numbersOf()).toEqual([0, 1, 2]);
  expect(await redis.exists(queueKeys(name).timeouts)).toBe(0);
  expect((await queue.insertionOrder.readAll()).toSorted()).toEqual(["left", "there"]);
});
