import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { watchCommands } from "../../helpers/monitor.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const MINUTE = 60_000;

/**
 * Generous: on a quiet machine clients obey a pause within milliseconds. Without a wake-up they notice it in half a
 * minute.
 */
const SOON = { within: 15_000 };

const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, i) => from + i);

/** A queue with clients like those of two processes: one offers and pauses, the other consumes. */
function open({ transfer = true, url }: { transfer?: boolean; url?: string } = {}) {
  const name = uniqueName("pause");
  const redis = url === undefined ? {} : { redis: url };
  const offering = newLine({ ...redis, transfer: false }).getDelayedQueue<number>(name);
  const consumer = newLine({ ...redis, transfer });
  const ready = consumer.getBlockingQueue<number>(name);
  const received: number[] = [];
  return { name, keys: queueKeys(name), offering, consumer, ready, received, redis: newRedis(url) };
}

/**
 * Makes all `count` clients that move or take look at the queue twice, and resolves when they have acted on the first
 * look: each looks a second time only after that.
 */
async function allLook(name: string, count: number, url?: string): Promise<void> {
  const { paused, channel } = queueKeys(name);
  const looks = await watchCommands(paused, url);
  const redis = newRedis(url);
  for (const round of [1, 2]) {
    await redis.publish(channel, "0");
    await eventually(async () => (await looks()).length >= round * count, SOON);
  }
}

describe("the pause", () => {
  test("is the same for every handle of every process", async () => {
    const { offering, ready, redis, keys } = open();
    expect(await ready.isPaused()).toBe(false);
    await offering.pause();
    await offering.pause();
    expect(await offering.isPaused()).toBe(true);
    expect(await ready.isPaused()).toBe(true);
    expect(await redis.exists(keys.paused)).toBe(1);
    await ready.resume();
    expect(await offering.isPaused()).toBe(false);
    expect(await redis.exists(keys.paused)).toBe(0);
  });
});

describe.each([{ transfer: true }, { transfer: false }])(
  "a consumer, transfer: $transfer",
  (options) => {
    test("takes nothing from its start on, in any way, while offers and reading continue", async () => {
      const name = uniqueName("pause");
      const redis = newRedis();
      const offering = newLine({ transfer: false }).getDelayedQueue<number>(name);
      await offering.pause();
      await redis.rpush(name, "\x01", "\x02");
      // It starts after the pause: a running one obeys within a second, not at once.
      const consumer = newLine(options);
      const ready = consumer.getBlockingQueue<number>(name);
      const started = performance.now();
      const taken = Promise.all([
        ready.poll(),
        ready.poll(50),
        ready.drain(),
        ready.takeMany({ limit: 5, timeout: 0 }),
        ready.takeMany({ limit: 5, timeout: 50 }),
        ready.pollFromAny([uniqueName()], 50),
      ]);
      expect(await taken).toEqual([undefined, undefined, [], [], [], undefined]);
      // One of the waits began only after its connection had been made, and none ended early.
      expect(performance.now() - started).toBeGreaterThanOrEqual(49);
      await expect(ready.take({ signal: AbortSignal.timeout(50) })).rejects.toThrow();
      expect(await ready.size()).toBe(2);
      expect(await ready.peek()).toBe(1);
      expect(await ready.readAll()).toEqual([1, 2]);
      await ready.put(3);
      await offering.offer(4, MINUTE, { key: "4" });
      expect(await offering.cancel("4")).toBe(true);
      await ready.resume();
      expect(await ready.drain()).toEqual([1, 2, 3]);
      expect(consumer.listenerCount("error")).toBe(1);
    });

    test("stops when another process pauses, and goes on when it resumes", async () => {
      const { offering, ready, received, name, redis } = open(options);
      // Its messages become ready, whichever process moves them.
      newLine().getDelayedQueue(name);
      ready.subscribe((number) => received.push(number), { concurrency: 3 });
      const looped: number[] = [];
      void (async () => {
        for await (const number of ready) looped.push(number);
      })();
      const all = () => [...received, ...looped].toSorted((a, b) => a - b);
      await offering.offer(0, 0);
      await eventually(() => expect(all()).toEqual([0]));

      await offering.pause();
      // Its blocking call ends, and it does not block again.
      await eventually(
        async () => !/:blocking:\S*\b.*flags=\S*b/.test(await listOf(redis, name)),
        SOON,
      );
      await redis.rpush(name, "\x01", "\x02", "\x03", "\x04");
      await offering.offer(5, 0);
      await allLook(name, 2);
      expect(all()).toEqual([0]);
      expect(await ready.size()).toBe(4);
      expect(await offering.size()).toBe(1);

      await offering.resume();
      await eventually(() => expect(all()).toEqual([0, 1, 2, 3, 4, 5]), SOON);
    });
  },
);

/** The connections of `CLIENT LIST` that take from this queue. */
async function listOf(redis: ReturnType<typeof newRedis>, name: string): Promise<string> {
  const lines = String(await redis.client("LIST")).split("\n");
  return lines.filter((line) => line.includes(`:${name} `)).join("\n");
}

describe("transfer", () => {
  test("makes nothing ready while the queue is paused, and afterwards everything, in order", async () => {
    const { offering, consumer, name } = open();
    const watching = consumer.getDelayedQueue<number>(name);
    await offering.pause();
    const due = Date.now() - 10 * MINUTE;
    for (const number of numbers(5)) await offering.offerAt(number, due - number);
    const promoted = await offering.offer(5, MINUTE, { key: "5" });
    expect(promoted.outcome).toBe("added");
    await offering.promote("5");
    await allLook(name, 1);
    expect(await watching.size()).toBe(6);
    await watching.resume();
    const ready = consumer.getBlockingQueue<number>(name);
    const taken: number[] = [];
    while (taken.length < 6) taken.push(await ready.take());
    expect(taken).toEqual([4, 3, 2, 1, 0, 5]);
  });

  test("of a backlog stops between two batches", async () => {
    const { offering, name, ready, redis } = open();
    await offering.offerMany(numbers(5000).map((payload) => ({ payload, delay: 0 })));
    await eventually(async () => (await redis.llen(name)) > 0);
    await offering.pause();
    let before = -1;
    await eventually(async () => {
      const now = await redis.llen(name);
      const isStill = now === before;
      before = now;
      await sleep(50);
      return isStill && (await offering.size()) + now === 5000;
    });
    await offering.resume();
    const taken: number[] = [];
    while (taken.length < 5000) taken.push(...(await ready.takeMany({ limit: 1000 })));
    expect(taken).toEqual(numbers(5000));
  });
});

test("a pause survives a restart of Redis, and connected and later clients obey it", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const name = uniqueName("pause");
  const offering = newLineThatMayFail({ redis: server.url, transfer: false });
  const old = newLineThatMayFail({ redis: server.url });
  const taker = newLineThatMayFail({ redis: server.url, transfer: false });
  const received: number[] = [];
  const consume = (line: typeof old) =>
    line.getBlockingQueue<number>(name).subscribe((number) => received.push(number));
  consume(old);
  consume(taker);
  const queue = offering.getDelayedQueue<number>(name);
  await queue.offer(0, 0);
  await eventually(() => received.length === 1);
  await queue.pause();
  for (const number of numbers(20, 1)) await queue.offer(number, number);
  await server.kill();
  await server.restart();

  const young = newLineThatMayFail({ redis: server.url });
  consume(young);
  const redis = newRedis(server.url);
  // All have subscribed to the channel again, so they have asked.
  const { channel } = queueKeys(name);
  await eventually(
    async () => {
      const [, subscribers] = (await redis.pubsub("NUMSUB", channel)) as [string, number];
      return subscribers === 3;
    },
    { within: 30_000 },
  );
  await redis.rpush(name, "\x7f");
  await allLook(name, 3, server.url);
  expect(received).toEqual([0]);
  expect(await queue.isPaused()).toBe(true);
  await queue.resume();
  await eventually(() => received.length === 22);
  expect(received.toSorted((a, b) => a - b)).toEqual([...numbers(21), 127]);
}, 120_000);

test("a storm of pauses loses and duplicates nothing", async () => {
  const name = uniqueName("pause-storm");
  const [first, second, third] = [newLine(), newLine(), newLine({ transfer: false })];
  const offering = first.getDelayedQueue<number>(name);
  const received: number[] = [];
  for (const line of [first, second, third]) {
    line.getBlockingQueue<number>(name).subscribe((number) => received.push(number), {
      concurrency: 4,
    });
  }
  const over = new AbortController();
  onTestFinished(() => over.abort());
  // Other calls wait only briefly, or leave.
  const fickle = (async () => {
    const ready = second.getBlockingQueue<number>(name);
    while (!over.signal.aborted) {
      const signal = AbortSignal.timeout(1 + Math.floor(Math.random() * 20));
      const one = await ready.take({ signal }).catch(() => undefined);
      if (one !== undefined) received.push(one);
      received.push(...(await ready.takeMany({ limit: 10, timeout: Math.random() * 10 })));
      const popped = await third.getBlockingQueue<number>(name).poll();
      if (popped !== undefined) received.push(popped);
      await sleep(1);
    }
  })();
  const COUNT = 6000;
  let offered = 0;
  for (let round = 0; offered < COUNT; round++) {
    const line = [first, second, third][round % 3] as typeof first;
    const some = numbers(100, offered);
    offered += some.length;
    await Promise.all([
      offering.offerMany(some.map((payload) => ({ payload, delay: Math.random() * 20 }))),
      line.getDelayedQueue(name, { transfer: false }).pause(),
    ]);
    await sleep(Math.random() * 10);
    await line.getBlockingQueue(name).resume();
  }
  await eventually(() => received.length >= COUNT, { within: 40_000 });
  over.abort();
  await fickle;
  expect(received.toSorted((a, b) => a - b)).toEqual(numbers(COUNT));
}, 120_000);

test("without pauses the feature costs nothing per message, and asks at most twice a minute", async () => {
  const { offering, ready, name, keys } = open({ transfer: false });
  newLine().getDelayedQueue(name);
  await offering.offer(-1, 0);
  expect(await ready.take()).toBe(-1);
  const watched = await watchCommands(keys.paused);
  for (const number of numbers(300)) await offering.offer(number, Math.random() * 50);
  for (let taken = 0; taken < 300; taken++) await ready.take();
  expect(await ready.poll()).toBeUndefined();
  // Every script names its keys. Only a transfer or a sweep names this one.
  const asked = (await watched()).filter(([command]) => command?.toLowerCase() === "exists");
  expect(asked.length).toBeLessThanOrEqual(2);
});
