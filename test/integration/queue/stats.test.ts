import { describe, expect, test } from "vitest";
import type { QueueHandle } from "../../../src/handles/queue-handle.ts";
import type { ReliableQueue } from "../../../src/index.ts";
import { queueOf } from "../../../src/client/queue-names.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

const KINDS = [
  ["an ordinary queue", {}],
  ["a queue in partitions", { partitions: 3 }],
] as const;

/** Waits until a queue has these numbers. */
async function until(queue: QueueHandle, numbers: object): Promise<void> {
  await eventually(async () => expect(await queue.stats()).toMatchObject(numbers));
}

test.each(KINDS)(
  "%s: each handle returns the same numbers, and reading them moves nothing",
  async (_, options) => {
    const name = uniqueName("stats");
    const line = newLine({ transfer: false });
    const queue = line.getDelayedQueue<string>(name, options);
    const from = Math.floor(await line.serverTime());
    await queue.offerAt("late", from - 90_000);
    for (const hours of [1, 2, 2]) await queue.offerAt("x", from + hours * HOUR);
    const ready = line.getBlockingQueue<string>(name, options);
    await ready.put("now");
    const expected = {
      kind: "plain",
      isPaused: false,
      delayed: 4,
      overdue: 1,
      ready: 1,
      inFlight: 0,
      retries: 0,
      dead: 0,
      quarantined: 0,
      nextDeadline: from - 90_000,
      oldestReadyAge: undefined,
      consumers: undefined,
      listeners: 0,
      readied: undefined,
      finished: undefined,
    };
    for (const handle of [queue, ready]) {
      expect(await handle.stats()).toMatchObject(expected);
      // Half an hour before the first.
      const spans = { from: from - HOUR / 2, step: HOUR, count: 3 };
      expect(await handle.forecast(spans)).toEqual({
        from: from - HOUR / 2,
        step: HOUR,
        counts: [1, 1, 2],
      });
    }
    await queue.pause();
    expect(await ready.stats()).toMatchObject({ ...expected, isPaused: true });
  },
);

test.each(KINDS)(
  "%s, reliable: a message counts as ready, in flight, retrying, dead, and then as gone",
  async (_, options) => {
    const name = uniqueName("stats");
    const line = newLine();
    const queue: ReliableQueue<string> = line.getReliableQueue(name, {
      ...options,
      retry: () => HOUR,
      maxAttempts: 2,
    });
    await queue.offerMany(["a", "b", "c", "d"].map((payload) => ({ payload, delay: 0 })));
    await until(queue, { kind: "reliable", delayed: 0, ready: 4, inFlight: 0 });
    const { oldestReadyAge } = await queue.stats();
    expect(oldestReadyAge).toBeGreaterThanOrEqual(0);

    const [a, b, c, d] = await takeAll(queue, 4);
    await until(queue, { ready: 0, inFlight: 4, oldestReadyAge: undefined, consumers: 1 });
    await a?.ack();
    await b?.nack({ delay: 1.5 * HOUR });
    await c?.reject("no good");
    await until(queue, { inFlight: 1, retries: 1, dead: 1, readied: 4, finished: 3 });
    const { nextDeadline = 0, serverTime } = await queue.stats();
    expect(nextDeadline - serverTime).toBeGreaterThan(HOUR);
    expect((await queue.forecast({ step: HOUR, count: 3 })).counts).toEqual([0, 1, 0]);

    await d?.ack();
    await queue.deadLetters.redrive("all");
    const [again] = await takeAll(queue, 1);
    await again?.ack();
    await until(queue, { ready: 0, inFlight: 0, retries: 1, dead: 0, readied: 5, finished: 5 });
  },
);

async function takeAll(queue: ReliableQueue<string>, count: number) {
  const taken = [];
  while (taken.length < count) taken.push(...(await queue.takeMany({ limit: count })));
  return taken;
}

test("each of several groups counts its own messages", async () => {
  const name = uniqueName("stats");
  const line = newLine();
  const [mail, billing] = ["mail", "billing"].map((group) =>
    line.getReliableQueue<string>(name, { group }),
  ) as [ReliableQueue<string>, ReliableQueue<string>];
  await mail.poll();
  await billing.poll();
  await mail.offer("x", 0);
  await until(billing, { ready: 2, inFlight: 0 });
  const delivery = await mail.take();
  await until(mail, { ready: 1, inFlight: 1, readied: 1, finished: 0 });
  await delivery.ack();
  await until(mail, { ready: 1, inFlight: 0, readied: 1, finished: 0 });
  await (await billing.take()).ack();
  await until(mail, { ready: 0, inFlight: 0, consumers: 2, readied: 1, finished: 1 });
});

test("unreadable messages are quarantined, and counted there", async () => {
  const name = uniqueName("stats");
  const line = newLine({ codec: "json" });
  const ready = line.getBlockingQueue(name);
  await newRedis().rpush(queueKeys(name).ready, "{");
  await expect(ready.take()).rejects.toThrow("cannot decode");
  await until(ready, { ready: 0, quarantined: 1 });
});

test("a client that moves a queue's messages counts as a listener", async () => {
  const name = uniqueName("stats");
  const looker = newLine({ transfer: false }).getDelayedQueue(name);
  expect((await looker.stats()).listeners).toBe(0);
  const mover = newLine();
  await mover.getDelayedQueue(name).offer("x", HOUR);
  await until(looker, { listeners: 1 });
  await mover.close();
  await until(looker, { listeners: 0 });
});

test("the numbers of a queue in partitions are those of each partition, and their sums", async () => {
  const name = uniqueName("stats");
  const line = newLine({ transfer: false });
  const queue = line.getDelayedQueue(name, { partitions: 3 });
  await queue.offerMany(Array.from({ length: 30 }, () => ({ payload: "x", delay: HOUR })));
  const { perPartition, delayed } = await queue.stats();
  expect(perPartition.map(({ partition }) => partition)).toEqual([0, 1, 2]);
  expect(delayed).toBe(30);
  const counts = perPartition.map((one) => one.delayed);
  expect(counts.reduce((sum, count) => sum + count)).toBe(30);
  const known = await line.partitions(name);
  expect(known.map((one) => one.delayed)).toEqual(counts);
});

test("the partitions of a queue hold what its numbers say, while messages retry and are in flight", async () => {
  const name = uniqueName("stats");
  const line = newLine();
  const [queue, other] = ["one", "two"].map((group) =>
    line.getReliableQueue<string>(name, { partitions: 2, leaseTimeout: 30_000, group }),
  ) as [ReliableQueue<string>, ReliableQueue<string>];
  await queue.offer("later", HOUR);
  await queue.offerMany(Array.from({ length: 12 }, () => ({ payload: "x", delay: 0 })));
  await (await queue.take()).nack({ delay: HOUR });
  await (await queue.take()).ack();
  for (let i = 0; i < 3; i++) await queue.take();
  for (let i = 0; i < 4; i++) await (await other.take()).ack();
  await other.take();
  await until(queue, { delayed: 1, retries: 1, inFlight: 4 });
  const stats = await queue.stats();
  const known = await line.partitions(name);
  for (const number of ["delayed", "retries", "ready", "inFlight"] as const) {
    expect([number, ...known.map((one) => one[number])]).toEqual([
      number,
      ...stats.perPartition.map((one) => one[number]),
    ]);
  }
});

test("a client with an open ordinary queue sees that another client has put it in partitions", async () => {
  const name = uniqueName("stats");
  const looker = newLine({ transfer: false });
  expect(await looker.getDelayedQueue(name).size()).toBe(0);
  expect(await looker.stats(name)).toMatchObject({ delayed: 0, perPartition: [] });
  const line = newLine({ transfer: false });
  await line.getDelayedQueue(name, { partitions: 2 }).offer("x", HOUR);
  const { delayed, perPartition } = await looker.stats(name);
  expect([delayed, perPartition.length]).toEqual([1, 2]);
});

test.each([
  ["step", { step: 0, count: 1 }, /step must be a whole number between 1 and/],
  ["count", { step: 1, count: 1001 }, /count must be a whole number between 1 and 1000/],
  ["from", { step: 1, count: 1, from: NaN }, /from must be between 100000000000 and/],
  ["spann", { step: 1, count: 1, spann: 1 }, /forecast option must be one of/],
])("a forecast refuses a bad %s", async (_, options, message) => {
  const queue = newLine({ transfer: false }).getDelayedQueue(uniqueName());
  await expect(queue.forecast(options)).rejects.toThrow(message);
});

test("a long forecast is read in steps", async () => {
  const queue = newLine({ transfer: false }).getDelayedQueue(uniqueName());
  const { deadline } = await queue.offer("x", HOUR);
  const { counts } = await queue.forecast({ from: deadline - 249, step: 1, count: 251 });
  expect(counts.flatMap((count, i) => (count === 1 ? [i] : []))).toEqual([249]);
});

async function namesOf(line: ReturnType<typeof newLine>): Promise<string[]> {
  const names: string[] = [];
  for await (const name of line.queues()) names.push(name);
  return names.toSorted();
}

const newClient = (keyPrefix: string, transfer = true) =>
  newLine({ redis: newRedis(redisUrl(), { keyPrefix }), transfer });
/** Whether another client, which moves nothing, finds the queue. */
const isFound = async (name: string, keyPrefix = "") =>
  (await namesOf(newClient(keyPrefix, false))).includes(name);

describe("a plain queue with nothing but ready messages is found when its processes have ended", () => {
  test.each(["", "app:"])("until they are taken; key prefix %j", async (keyPrefix) => {
    const name = uniqueName();
    const line = newClient(keyPrefix);
    const queue = line.getDelayedQueue(name);
    await queue.offer("x", 0);
    await eventually(async () => (await queue.stats()).ready === 1);
    await line.close();
    expect(await isFound(name, keyPrefix)).toBe(true);

    const consumer = newClient(keyPrefix);
    expect(await consumer.getBlockingQueue(name).take()).toBe("x");
    await consumer.close();
    expect(await isFound(name, keyPrefix)).toBe(false);
  });

  test("also those of a process that was killed, and those that Java or a put made ready", async () => {
    const redis = newRedis();
    const [killed, fromJava, put] = [uniqueName("a"), uniqueName("b"), uniqueName("c")];
    const line = newLine();
    await line.getDelayedQueue(killed).offer("x", 0);
    // At once: a process that is killed does nothing more.
    await eventually(async () => (await redis.llen(killed)) === 1);
    await redis.del(queueKeys(killed).mover);
    expect(await isFound(killed)).toBe(true);

    line.getBlockingQueue(fromJava);
    await redis.rpush(fromJava, '"x"');
    await line.getBlockingQueue(put).put("x");
    await line.close();
    expect(await isFound(fromJava)).toBe(true);
    expect(await isFound(put)).toBe(true);
  });

  test("no name outlives its messages, however many queues there are", async () => {
    const { url } = await startOwnServer();
    const line = newLine({ redis: url });
    const names = Array.from({ length: 200 }, (_, i) => `tenant ${i}`);
    await Promise.all(names.map((name) => line.getDelayedQueue(name).offer("x", 0)));
    await Promise.all(names.map((name) => line.getBlockingQueue(name).take()));
    await line.close();
    expect(await newRedis(url).keys("*")).toEqual([]);
  });
});

test("every queue is found among thousands of other keys", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url });
  const names = Array.from({ length: 20 }, (_, i) => `queue ${i}`).toSorted();
  for (const name of names) await line.getDelayedQueue(name).offer("x", HOUR);
  await newRedis(url).mset(Array.from({ length: 5000 }, (_, i) => [`user:${i}`, "x"]).flat());
  expect(await namesOf(line)).toEqual(names);
});

test("queues are found by their keys, whatever these hold, and other keys are ignored", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url, codec: "json" });
  const redis = newRedis(url);
  expect(await namesOf(line)).toEqual([]);
  await line.getDelayedQueue("delayed").offer("x", HOUR);
  await line.getDelayedQueue("{tag}:a").offer("x", HOUR);
  await line.getDelayedQueue("of two/1").offer("x", HOUR);
  await line.getDelayedQueue("parts", { partitions: 4 }).offer("x", HOUR);
  await line.getDelayedQueue("100% {parts}", { partitions: 2 }).offer("x", HOUR);
  await line.getDelayedQueue("paused").pause();
  await line.getReliableQueue("reliable").poll();
  await redis.rpush(queueKeys("quarantined").ready, "{");
  await expect(line.getBlockingQueue("quarantined").take()).rejects.toThrow();
  await redis.mset("delay", "x", "redisson_delay_queue", "x", "user:1", "x");
  await redis.rpush("ready only", "x");
  expect(await namesOf(line)).toEqual(
    [
      "delayed",
      "{tag}:a",
      "of two/1",
      "parts",
      "100% {parts}",
      "paused",
      "reliable",
      "quarantined",
    ].toSorted(),
  );
});

test("a client with a key prefix finds its own queues, without the prefix", async () => {
  const { url } = await startOwnServer();
  const mine = newLine({ redis: { url, keyPrefix: "a*[b]:" } });
  const others = newLine({ redis: { url, keyPrefix: "axb:" } });
  await mine.getDelayedQueue("orders").offer("x", HOUR);
  await others.getDelayedQueue("theirs").offer("x", HOUR);
  expect(await namesOf(mine)).toEqual(["orders"]);
  expect(await namesOf(others)).toEqual(["theirs"]);
});

test("on several servers each queue is found once", async () => {
  const servers = [await startOwnServer(), await startOwnServer()];
  const line = newLine({ redis: servers.map(({ url }) => url) });
  const queue = line.getDelayedQueue("parts", { partitions: 4 });
  await queue.offerMany(Array.from({ length: 8 }, () => ({ payload: "x", delay: HOUR })));
  await line.getDelayedQueue("orders").offer("x", HOUR);
  expect(await namesOf(line)).toEqual(["orders", "parts"]);
  expect(await queue.stats()).toMatchObject({ delayed: 8 });
});

test.each([
  ["redisson_delay_queue_timeout:{orders}", "orders"],
  ["delayline_stream:{orders}", "orders"],
  ["delayline_keys:{a}b", "{a}b"],
  ["delayline_paused:orders", undefined],
  ["redisson_delay_queue:{orders}", undefined],
  ["delayline_receipts:{orders}", undefined],
  ["orders", undefined],
])("the key %s belongs to %s", (key, name) => {
  expect(queueOf(key)).toBe(name);
});
