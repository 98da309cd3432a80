import { expect, test } from "vitest";
import type { Delayline } from "../../src/index.ts";
import { newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { serverTime } from "../helpers/server-time.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";

const MINUTE = 60_000;

/** Milliseconds for which nothing gets through. */
const AWAY = 600;

/** A call that waits for Redis; returns when its message is due then. */
type Waiting = (line: Delayline, name: string) => Promise<() => Promise<number>>;

const CALLS: Record<string, Waiting> = {
  offer: async (line, name) => {
    const queue = line.getDelayedQueue(name);
    return async () => (await queue.offer("a", MINUTE)).deadline;
  },
  "offer with a key": async (line, name) => {
    const queue = line.getDelayedQueue(name);
    return async () => (await queue.offer("a", MINUTE, { key: "k" })).deadline;
  },
  "several offers in one turn": async (line, name) => {
    const queue = line.getDelayedQueue(name);
    const offerAll = () => Promise.all([queue.offer("a", MINUTE), queue.offer("b", MINUTE)]);
    return async () => Math.max(...(await offerAll()).map(({ deadline }) => deadline));
  },
  offerMany: async (line, name) => {
    const queue = line.getDelayedQueue(name);
    const all = ["a", "b"].map((payload) => ({ payload, delay: MINUTE }));
    return async () => Math.max(...(await queue.offerMany(all)).map(({ deadline }) => deadline));
  },
  "offer to a partitioned queue": async (line, name) => {
    const queue = line.getDelayedQueue(name, { partitions: 2 });
    return async () => (await queue.offer("a", MINUTE, { key: "k" })).deadline;
  },
  reschedule: async (line, name) => {
    const queue = line.getDelayedQueue(name);
    const { id } = await queue.offer("a", 10 * MINUTE);
    return async () => (await queue.reschedule(id, MINUTE))?.deadline ?? NaN;
  },
  nack: async (line, name) => {
    const queue = line.getReliableQueue(name);
    const { id } = await queue.offer("a", 0);
    const delivery = await queue.take();
    return async () => {
      await delivery.nack({ delay: MINUTE });
      return (await queue.get(id))?.deadline ?? NaN;
    };
  },
};

test.each(Object.entries(CALLS))(
  "%s: the delay counts from the call, though Redis cannot be reached for a while",
  async (_, prepare) => {
    const proxy = await startProxy(redisUrl());
    const redis = newRedis();
    const line = newLineThatMayFail({ redis: proxy.url });
    const name = uniqueName("from-the-call");
    const call = await prepare(line, name);
    proxy.refuse();
    proxy.cut();
    await eventually(() => line.errors.length > 0);
    const calledAt = await serverTime(redis);
    const deadline = call();
    await eventually(async () => (await serverTime(redis)) > calledAt + AWAY);
    await proxy.accept();
    expect(await deadline).toBeGreaterThanOrEqual(Math.floor(calledAt) + MINUTE);
    // It would be at least that, if it counted from the arrival.
    expect(await deadline).toBeLessThan(calledAt + MINUTE + AWAY);
  },
);

test("delays that are over when Redis can be reached are due at once, in the order of their deadlines", async () => {
  const proxy = await startProxy(redisUrl());
  const redis = newRedis();
  proxy.refuse();
  const line = newLineThatMayFail({ redis: proxy.url });
  const name = uniqueName("from-the-call");
  const calledAt = await serverTime(redis);
  const messages = [300, 200, 100, 0].map((delay) => ({ payload: delay, delay }));
  const offered = line.getDelayedQueue(name).offerMany(messages);
  await eventually(async () => (await serverTime(redis)) > calledAt + AWAY);
  await proxy.accept();
  for (const [i, { deadline }] of (await offered).entries()) {
    expect(deadline).toBeGreaterThanOrEqual(Math.floor(calledAt) + (messages[i]?.delay ?? NaN));
    expect(deadline).toBeLessThan(calledAt + AWAY);
  }
  const ready = newLineThatMayFail().getBlockingQueue<number>(name);
  for (const delay of [0, 100, 200, 300]) expect(await ready.take()).toBe(delay);
});
