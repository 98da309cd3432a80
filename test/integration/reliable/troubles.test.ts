import { describe, expect, test } from "vitest";
import { RedisError, type ReliableQueue } from "../../../src/index.ts";
import { retryLater } from "../../../src/lua/reliable/deliveries.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

test("deliveries held while Redis is away are settled when it is back", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const line = newLineThatMayFail({ redis: server.url, callTimeout: 500 });
  const queue = line.getReliableQueue<string>(uniqueName(), { retry: [0] });
  const gate = new Gate();
  const seen: string[] = [];
  const byHand = await (await queue.offer("by hand", 0), queue.take());
  const subscription = queue.subscribe(
    async (payload, { attempt }) => {
      seen.push(`${payload} ${attempt}`);
      if (attempt === 1) await gate.opened;
      if (payload === "fails" && attempt === 1) throw new Error("no");
    },
    { concurrency: 2, onError: () => {} },
  );
  await queue.offer("returns", 0);
  await queue.offer("fails", 0);
  await eventually(() => subscription.running === 2);
  await server.kill();
  gate.open();
  const outcome = await byHand.ack().catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(RedisError);
  await server.restart();
  // With a lease of 30 s no delivery is lost meanwhile.
  await eventually(async () => expect(await byHand.ack()).toBe(true));
  await eventually(() => seen.includes("fails 2"));
  await eventually(async () => (await queue.size()) === 0);
  expect(seen.toSorted()).toEqual(["fails 1", "fails 2", "returns 1"]);
  await queue.offer("after", 0);
  await eventually(() => seen.includes("after 1"));
});

test("after a lease timeout without Redis, the signals of held deliveries are aborted", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const line = newLineThatMayFail({ redis: server.url });
  const queue = line.getReliableQueue<string>(uniqueName(), { leaseTimeout: 1000 });
  await queue.offer("x", 0);
  const delivery = await queue.take();
  await delivery.extend(60_000);
  await server.kill();
  await eventually(() => delivery.signal.aborted);
  expect(String(delivery.signal.reason)).toMatch(/may be lost/);
  await server.restart();
  // No other consumer was there to take it.
  await eventually(async () => expect(await delivery.ack()).toBe(true));
});

test("a paused queue delivers nothing, not even a retry, and held deliveries can be settled", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<string>(name);
  const other = newLine().getReliableQueue<string>(name);
  const seen: string[] = [];
  await queue.offer("in hand", 0);
  await queue.offer("retrying", 0);
  const [inHand, retrying] = await queue
    .takeMany({ limit: 2 })
    .then(async (some) => (some.length === 2 ? some : [...some, await queue.take()]));
  await queue.offer("ready", 0);
  await eventually(async () => (await newRedis().xlen(queueKeys(name).stream)) === 3);
  await queue.pause();
  other.subscribe((payload, { attempt }) => seen.push(`${payload} ${attempt}`));
  expect(await queue.isPaused()).toBe(true);
  expect(await retrying?.nack({ delay: 0 })).toBe(true);
  await other.offer("new", 0);
  expect(await queue.poll(200)).toBeUndefined();
  expect(await inHand?.ack()).toBe(true);
  expect(seen).toEqual([]);
  expect(await queue.size()).toBe(2);
  await other.resume();
  await eventually(() => seen.length === 3);
  expect(seen.toSorted()).toEqual(["new 1", "ready 1", "retrying 2"]);
});

describe.each(["the group", "the stream"])("an operator destroys %s", (what) => {
  const destroy = async (name: string) => {
    const { stream } = queueKeys(name);
    const redis = newRedis();
    if (what === "the stream") await redis.del(stream);
    else await redis.xgroup("DESTROY", stream, "default");
  };

  test("while a process waits: it is created again, and the queue goes on", async () => {
    const name = uniqueName();
    const queue = newLine().getReliableQueue<string>(name);
    const taking = queue.take();
    const { stream } = queueKeys(name);
    const redis = newRedis();
    await eventually(async () => (await redis.exists(stream)) === 1);
    await queue.poll();
    await destroy(name);
    await queue.offer("x", 0);
    const delivery = await taking;
    expect(delivery).toMatchObject({ payload: "x", attempt: 1 });
    expect(await delivery.ack()).toBe(true);
  });

  test("while handlers run: their acks find nothing, and the queue goes on", async () => {
    const name = uniqueName();
    const line = newLineThatMayFail();
    const queue = line.getReliableQueue<string>(name, { leaseTimeout: 300 });
    const gate = new Gate();
    const seen: string[] = [];
    const signals: AbortSignal[] = [];
    queue.subscribe(
      async (payload, { signal }) => {
        seen.push(payload);
        if (payload === "after") return;
        signals.push(signal);
        await gate.opened;
        if (payload === "fails") throw new Error("no");
      },
      { concurrency: 2, onError: () => {} },
    );
    await queue.offer("returns", 0);
    await queue.offer("fails", 0);
    await eventually(() => signals.length === 2);
    await destroy(name);
    await eventually(() => signals.every(({ aborted }) => aborted));
    gate.open();
    await queue.offer("after", 0);
    await eventually(() => seen.includes("after"));
    await eventually(async () => (await newRedis().xlen(queueKeys(name).stream)) === 0);
  });

  test("while nobody waits: an offer and a take go on", async () => {
    const name = uniqueName();
    const queue = newLineThatMayFail().getReliableQueue<string>(name);
    await queue.offer("gone or not", 60_000);
    await destroy(name);
    await queue.clear();
    await queue.offer("x", 0);
    const delivery = await queue.take();
    expect(delivery.payload).toBe("x");
    expect(await delivery.ack()).toBe(true);
    expect(await queue.poll()).toBeUndefined();
  });
});

test("with a key of another type calls reject, and the wait goes on when the key is repaired", async () => {
  const name = uniqueName();
  const { stream } = queueKeys(name);
  const redis = newRedis();
  await redis.set(stream, "no stream");
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<string>(name);
  await expect(queue.take()).rejects.toThrow(/WRONGTYPE/);
  await expect(queue.offer("x", 0)).rejects.toThrow(/WRONGTYPE/);
  const seen: string[] = [];
  queue.subscribe((payload) => seen.push(payload));
  await eventually(() => line.errors.some(({ message }) => message.includes("WRONGTYPE")));
  await redis.del(stream);
  await queue.offer("y", 0);
  await eventually(() => seen.length === 1);
});

test("a producer needs no reliable handle: its messages reach the same groups", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<string>(name);
  const taking = queue.take();
  const { stream } = queueKeys(name);
  await eventually(async () => (await newRedis().exists(stream)) === 1);
  for (const transfer of [true, false]) {
    const producer = newLine({ transfer }).getDelayedQueue<string>(name);
    const { id } = await producer.offer("x", 10, { key: "k" });
    const delivery = transfer ? await taking : await queue.take();
    expect(delivery).toMatchObject({ id, payload: "x", key: "k", attempt: 1 });
    expect(await delivery.ack()).toBe(true);
  }
  // A payload pushed to the LIST arrives as well, without a key.
  await newLine().getBlockingQueue<string>(name).put("put");
  const put = await queue.take();
  expect(put).toMatchObject({ payload: "put", key: undefined, attempt: 1 });
  await put.ack();
});

test("handles of one group in one client must agree on the group's options, and may differ in others", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue: ReliableQueue = line.getReliableQueue(name, { leaseTimeout: 5_000 });
  expect(() => line.getReliableQueue(name, { leaseTimeout: 6_000 })).toThrow(TypeError);
  expect(() => line.getReliableQueue(name, { leaseTimeout: 6_000 })).toThrow(
    /leaseTimeout of group "default".*must be the same/,
  );
  const options = { leaseTimeout: 5_000, maxAttempts: 3 };
  expect(() => line.getReliableQueue(name, options)).toThrow(/maxAttempts/);
  expect(line.getReliableQueue(name, { group: "other", ...options }).group).toBe("other");
  const again = line.getReliableQueue(name, { leaseTimeout: 5_000, retry: [60_000] });
  await queue.offer("x", 0);
  await (await again.take()).nack();
  expect(Number(await queue.nextDeadline()) - (await line.serverTime())).toBeGreaterThan(50_000);
});

test("if the reply to a retry is lost and a beat finds the message gone, the trouble is over", async () => {
  const proxy = await startProxy(redisUrl());
  const line = newLineThatMayFail({ redis: proxy.url });
  // A beat every 33 ms; the settlement is tried again after 100 ms.
  const queue = line.getReliableQueue<string>(uniqueName(), { leaseTimeout: 100, retry: [0] });
  const seen: string[] = [];
  const handle = (payload: string, { attempt }: { readonly attempt: number }) => {
    seen.push(`${payload} ${attempt}`);
    if (attempt === 1) throw new Error("no");
  };
  queue.subscribe(handle, { onError: () => {} });
  // Redis has to know the script.
  await queue.offer("a", 0);
  await eventually(() => seen.includes("a 2"));

  const lost = proxy.loseReplyTo(retryLater.sha);
  await queue.offer("b", 0);
  await lost;
  await eventually(() => seen.includes("b 2"));
  await eventually(() => line.errors.length > 0);
  await eventually(() => expect(line.recoveries.length).toBe(line.errors.length));
});
