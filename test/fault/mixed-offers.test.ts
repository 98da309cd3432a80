import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { DelayedQueue, OfferResult } from "../../src/index.ts";
import { queueKeys } from "../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";
import { upTo } from "../helpers/numbers.ts";

/*
 * Offers with and without a key, made by one process. Redis may know one script and have forgotten the other. The order
 * of the calls is the insertion order, and the delivery order if deadlines are equal.
 */

const MINUTE = 60_000;

/** Some with a key and some without, in no fixed pattern. */
const isKeyed = (n: number) => n % 7 === 0 || n % 3 === 1;

const optionsOf = (n: number) => (isKeyed(n) ? { key: `key:${n}` } : {});

/** The delayed messages in insertion order. */
async function iterated(queue: DelayedQueue<number>): Promise<number[]> {
  const payloads: number[] = [];
  for await (const { payload } of queue.insertionOrder) payloads.push(payload);
  return payloads;
}

const offerMany = (queue: DelayedQueue<number>, payloads: readonly number[]) =>
  queue.offerMany(payloads.map((payload) => ({ payload, delay: MINUTE, ...optionsOf(payload) })));

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe.each(["none", "redisson"] as const)("interop %s", (interop) => {
  /** A queue on a server of its own, and a way to make that server forget its scripts. */
  async function start() {
    const server = await startOwnServer({ appendOnly: true });
    const redis = newRedis(server.url);
    const line = newLineThatMayFail({ redis: server.url, interop, transfer: false, codec: "json" });
    const queue = line.getDelayedQueue<number>(uniqueName());
    // Both scripts have been used, and so has the connection.
    await queue.offer(-1, MINUTE);
    await queue.offer(-2, MINUTE, { key: "used" });
    await queue.clear();
    return { server, redis, line, queue };
  }

  test.each([
    ["offer", 4],
    ["offer-keyed", 4],
    ["offer-keyed", 250],
  ] as const)(
    "when Redis knows only the script %s after a restart, %d offers in one call keep their order",
    async (known, count) => {
      const { server, queue } = await start();
      await server.kill();
      await server.restart();
      await queue.offer(-1, MINUTE, known === "offer" ? {} : { key: "known" });
      await offerMany(queue, upTo(count));
      expect(await iterated(queue)).toEqual([-1, ...upTo(count)]);
    },
  );

  test.each(["offer", "offer-keyed"])(
    "when Redis knows only the script %s, 250 offers in one call keep their order",
    async (known) => {
      const { redis, queue } = await start();
      for (let round = 0; round < 10; round++) {
        await redis.script("FLUSH");
        await queue.offer(-1, MINUTE, known === "offer" ? {} : { key: "known" });
        await offerMany(queue, upTo(250));
        expect(await iterated(queue)).toEqual([-1, ...upTo(250)]);
        await queue.clear();
      }
    },
  );

  test.each(["offer", "offer-keyed"])(
    "when Redis knows only the script %s, offers of successive turns keep their order",
    async (known) => {
      const { redis, queue } = await start();
      for (let round = 0; round < 10; round++) {
        await redis.script("FLUSH");
        await queue.offer(-1, MINUTE, known === "offer" ? {} : { key: "known" });
        const offers: Promise<OfferResult>[] = [];
        for (const n of upTo(60)) {
          offers.push(queue.offer(n, MINUTE, optionsOf(n)));
          if (n % 2 === 0) await nextTurn();
        }
        await Promise.all(offers);
        expect(await iterated(queue)).toEqual([-1, ...upTo(60)]);
        await queue.clear();
      }
    },
  );

  test("a stream of offers keeps its order while Redis forgets its scripts again and again", async () => {
    const { redis, queue } = await start();
    const date = new Date(Date.now() + MINUTE);
    const offers: Promise<OfferResult>[] = [];
    for (let round = 0; round < 100; round++) {
      const flushed = redis.script("FLUSH");
      for (const n of upTo(20)) {
        const payload = round * 20 + n;
        offers.push(queue.offerAt(payload, date, optionsOf(payload)));
        if (n % 3 === 0) await nextTurn();
      }
      await flushed;
      // Now and then every call is settled, and plain offers may use their own script again.
      if (round % 10 === 0) await Promise.all(offers);
    }
    const ids = (await Promise.all(offers)).map(({ id }) => id);
    expect(await iterated(queue)).toEqual(upTo(2000));
    // Equal deadlines sort by id.
    expect(ids.toSorted()).toEqual(ids);
  });

  test("streams of offers to two queues of one client keep their order", async () => {
    const { redis, queue, line } = await start();
    const queues = [queue, line.getDelayedQueue<number>(uniqueName())];
    const offers: Promise<unknown>[] = [];
    for (let round = 0; round < 100; round++) {
      const flushed = redis.script("FLUSH");
      for (const n of upTo(20)) {
        const payload = round * 20 + n;
        for (const one of queues) {
          offers.push(one.offer(payload, MINUTE));
          await nextTurn();
        }
      }
      await flushed;
    }
    await Promise.all(offers);
    for (const one of queues) expect(await iterated(one)).toEqual(upTo(2000));
  });

  test("equal deadlines are delivered in the order of the calls", async () => {
    const { server, redis, queue } = await start();
    await redis.script("FLUSH");
    await queue.offerAt(0, new Date(1000));
    const offers = upTo(150).map((n) => queue.offerAt(n + 1, new Date(1000), optionsOf(n)));
    await nextTurn();
    offers.push(queue.offerAt(151, new Date(1000)));
    await Promise.all(offers);

    const ready = newLine({ redis: server.url, interop, codec: "json" });
    const taken: number[] = [];
    const consumer = ready.getBlockingQueue<number>(queue.name);
    while (taken.length < 152) taken.push(...(await consumer.takeMany({ limit: 50 })));
    expect(taken).toEqual(upTo(152));
  });

  test("a message without a key stays without one when it is sent together with others", async () => {
    const { redis, queue } = await start();
    const [plain, keyed] = await queue.offerMany([
      { payload: 1, delay: MINUTE },
      { payload: 2, delay: MINUTE, key: "two" },
    ]);
    expect([plain?.outcome, keyed?.outcome]).toEqual(["added", "added"]);
    expect(await queue.get(plain?.id ?? "")).toMatchObject({ payload: 1, key: undefined });
    expect(await redis.hkeys(queueKeys(queue.name).businessKeys)).toEqual(["two"]);
    expect(await queue.cancel(plain?.id ?? "")).toBe(true);
    expect(await queue.get("two")).toMatchObject({ payload: 2, key: "two" });
  });
});

test.each([1, 3])(
  "in %d partitions, offers made before and after the clock is known keep their order",
  async (partitions) => {
    const name = uniqueName();
    const settings = { codec: "json", partitions } as const;
    const proxy = await startProxy(redisUrl());
    // The clock is known after one round trip. Those who wait for it wait for a second one.
    proxy.delay.reply = 30;
    const line = newLine({ redis: proxy.url, transfer: false });
    const queue = line.getDelayedQueue<number>(name, settings);
    const due = new Date(Date.now() + 2000);
    const offers: Promise<OfferResult>[] = [];
    for (let n = 0; n < 120; n++) {
      offers.push(queue.offerAt(n, due, { partitionKey: "the only one" }));
      await sleep(2);
    }
    await Promise.all(offers);

    const ready = newLine().getBlockingQueue<number>(name, settings);
    const taken: number[] = [];
    while (taken.length < offers.length) taken.push(...(await ready.takeMany({ limit: 100 })));
    expect(taken).toEqual(upTo(offers.length));
  },
);

test.each([{}, { partitions: 3 }])(
  "offers made before and after the stream of a reliable queue is created keep their order, with %o",
  async (partitions) => {
    const proxy = await startProxy(redisUrl());
    const line = newLine({ redis: proxy.url, transfer: false });
    const options = { codec: "json", ...partitions } as const;
    // The connection and the clock are there already.
    await line.getReliableQueue<number>(uniqueName(), options).offer(0, MINUTE);
    proxy.delay.reply = 30;
    const queue = line.getReliableQueue<number>(uniqueName(), options);
    const offers: Promise<OfferResult>[] = [];
    for (const n of upTo(60)) {
      offers.push(queue.offer(n, MINUTE, { partitionKey: "the only one" }));
      await sleep(2);
    }
    await Promise.all(offers);
    const delayed: number[] = [];
    for await (const { payload } of queue.soonest(100)) delayed.push(payload);
    expect(delayed).toEqual(upTo(60));
  },
);
