import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, onTestFinished, test } from "vitest";
import { RedisError, RejectError, type Delivery } from "../../../src/index.ts";
import type { ScriptEvent } from "../../../src/lua/script.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/** Waits until `count` messages are retrying. */
async function untilRetrying(name: string, count: number): Promise<void> {
  const redis = newRedis();
  await eventually(async () => (await redis.zcard(queueKeys(name).retries)) === count);
}

/** Expects an empty queue: nothing ready, in flight, retrying, delayed or dead. */
async function expectNothingLeft(name: string): Promise<void> {
  const { stream, retries, retrying, dead, timeouts } = queueKeys(name);
  const redis = newRedis();
  expect(await redis.xlen(stream)).toBe(0);
  expect(await redis.exists(retries, retrying, timeouts)).toBe(0);
  expect(await redis.xlen(dead)).toBe(0);
}

test("a delivery has the offered values, and an acknowledged message is gone", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<number>(name);
  const { id } = await queue.offer(1, 20, { key: "k:1", headers: { a: "b" } });
  const delivery = await queue.take();
  expect(delivery).toMatchObject({ id, payload: 1, key: "k:1", headers: { a: "b" }, attempt: 1 });
  expect(delivery.signal.aborted).toBe(false);
  expect(await delivery.ack()).toBe(true);
  await expectNothingLeft(name);

  await queue.offer(2, 0);
  const bare = await queue.take();
  expect(bare).toMatchObject({ payload: 2, key: undefined, headers: {} });
  await bare.ack();
});

test("after a nack, a throw and an expired lease the id stays and the attempt grows; a redrive starts at 1 again", async () => {
  const name = uniqueName();
  const line = newLineThatMayFail();
  const options = { retry: [0], leaseTimeout: 1000, maxAttempts: 5 };
  const queue = line.getReliableQueue<string>(name, options);
  const headers = { a: "b" };
  const { id } = await queue.offer("x", 0, { key: "k", headers });

  const first = await queue.take();
  expect(await first.nack()).toBe(true);
  const second = await queue.take();
  // Nobody settles the second delivery: its lease ends.
  const third = await queue.take();
  await third.nack({ delay: 10, reason: "again" });
  const seen: Delivery<string>[] = [first, second, third];
  const subscription = queue.subscribe((_, delivery) => {
    seen.push(delivery);
    if (delivery.attempt === 4) throw new Error("no");
    throw new RejectError("never");
  });
  await eventually(async () => (await queue.deadLetters.size()) === 1);
  const [letter] = await collect(queue.deadLetters);
  expect(letter).toMatchObject({ id, attempt: 5, key: "k", headers, reason: "never" });
  await subscription.close();

  expect(await queue.deadLetters.redrive(id)).toBe(1);
  seen.push(await queue.take());
  expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 1]);
  for (const delivery of seen) {
    expect(delivery).toMatchObject({ id, payload: "x", key: "k", headers });
  }
  expect(await seen.at(-1)?.ack()).toBe(true);
  await expectNothingLeft(name);
});

test("once a delivery is settled, further settlements return false and change nothing", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<string>(name);
  const settle = [
    (delivery: Delivery) => delivery.ack(),
    (delivery: Delivery) => delivery.nack({ delay: 60_000 }),
    (delivery: Delivery) => delivery.reject("bad"),
  ];
  for (const first of settle) {
    await queue.offer("x", 0);
    const delivery = await queue.take();
    expect(await first(delivery)).toBe(true);
    for (const second of settle) expect(await second(delivery)).toBe(false);
    expect(await delivery.extend(1000)).toBe(false);
  }
  expect(await queue.size()).toBe(1);
  expect(await queue.deadLetters.size()).toBe(1);
  expect(await newRedis().xlen(queueKeys(name).stream)).toBe(0);
});

test("of two settlements at once one returns true", async () => {
  const queue = newLine().getReliableQueue<string>(uniqueName());
  await queue.offer("x", 0);
  const delivery = await queue.take();
  const both = [delivery.ack(), delivery.reject("bad")];
  expect(await Promise.all(both)).toEqual([true, false]);
  expect(await queue.deadLetters.size()).toBe(0);
});

test("after a nack in a handler, neither its return nor a throw changes anything", async () => {
  const [name, line] = [uniqueName(), newLineThatMayFail()];
  const queue = line.getReliableQueue<"returns" | "throws">(name, { maxAttempts: 2 });
  const seen: string[] = [];
  queue.subscribe(
    async (payload, delivery) => {
      seen.push(`${payload} ${delivery.attempt}`);
      expect(await delivery.nack({ delay: 60_000 })).toBe(true);
      if (payload === "throws") throw new Error("after the nack");
    },
    { concurrency: 2 },
  );
  await queue.offer("returns", 0);
  await queue.offer("throws", 0);
  await untilRetrying(name, 2);
  // The handler's error is still reported.
  await eventually(() => line.errors.length === 1);
  expect(seen.toSorted()).toEqual(["returns 1", "throws 1"]);
  const next = (await queue.nextDeadline()) ?? 0;
  expect(next - (await line.serverTime())).toBeGreaterThan(50_000);
});

test("a nack that is not awaited wins over the return of its handler", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<string>(name);
  queue.subscribe((_, delivery) => void delivery.nack({ delay: 60_000 }));
  await queue.offer("x", 0);
  await untilRetrying(name, 1);
});

test("an ack in a handler stands even if the handler throws afterwards", async () => {
  const name = uniqueName();
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<string>(name, { maxAttempts: 1 });
  queue.subscribe(async (_, delivery) => {
    await delivery.ack();
    throw new Error("too late");
  });
  await queue.offer("x", 0);
  await eventually(() => line.errors.length === 1);
  await expectNothingLeft(name);
});

test("an unsettled delivery comes back after the lease timeout, and its ack returns false", async () => {
  const line = newLine();
  const queue = line.getReliableQueue<string>(uniqueName(), { leaseTimeout: 300 });
  const { id } = await queue.offer("x", 0);
  const before = await line.serverTime();
  const first = await queue.take();
  expect(first.leaseEndsAt - before).toBeGreaterThan(290);
  expect(first.leaseEndsAt - (await line.serverTime())).toBeLessThanOrEqual(310);
  const second = await queue.take();
  expect((await line.serverTime()) - first.leaseEndsAt).toBeGreaterThan(-50);
  expect(second).toMatchObject({ id, attempt: 2 });
  expect(first.signal.aborted).toBe(true);
  expect(await first.ack()).toBe(false);
  expect(await first.extend(60_000)).toBe(false);
  expect(await second.ack()).toBe(true);
});

test("maxAttempts also limits deliveries that nobody settles", async () => {
  const queue = newLine().getReliableQueue<string>(uniqueName(), {
    leaseTimeout: 100,
    maxAttempts: 2,
  });
  const { id } = await queue.offer("x", 0);
  expect((await queue.take()).attempt).toBe(1);
  expect((await queue.take()).attempt).toBe(2);
  await eventually(async () => (await queue.deadLetters.size()) === 1);
  const [letter] = await collect(queue.deadLetters);
  const reason = "the delivery was not settled in time";
  expect(letter).toMatchObject({ id, attempt: 2, reason });
  expect(await queue.poll()).toBeUndefined();
});

test("an extended delivery stays, in this process and for others", async () => {
  const name = uniqueName();
  // A busy machine may stand still for a second.
  const options = { leaseTimeout: 2000 };
  const line = newLine();
  const queue = line.getReliableQueue<string>(name, options);
  const other = newLine().getReliableQueue<string>(name, options);
  await queue.offer("x", 0);
  const delivery = await queue.take();
  expect(await delivery.extend(60_000)).toBe(true);
  // The lease lasts as long as the process beats. This is its end without a further beat.
  expect(delivery.leaseEndsAt - (await line.serverTime())).toBeLessThanOrEqual(2010);
  expect(await other.poll(4000)).toBeUndefined();
  expect(delivery.signal.aborted).toBe(false);
  expect(delivery.attempt).toBe(1);
  expect(await delivery.ack()).toBe(true);
});

test("an extension may be shorter than the lease timeout", async () => {
  const queue = newLine().getReliableQueue<string>(uniqueName());
  await queue.offer("x", 0);
  const delivery = await queue.take();
  expect(await delivery.extend(50)).toBe(true);
  const again = await queue.take();
  expect(again.attempt).toBe(2);
  expect(await delivery.ack()).toBe(false);
  await again.ack();
});

test("when another consumer took the lease, the signal is aborted and settlements return false", async () => {
  const name = uniqueName();
  const { stream } = queueKeys(name);
  const redis = newRedis();
  const queue = newLine().getReliableQueue<string>(name, { leaseTimeout: 300 });
  await queue.offer("x", 0);
  let delivery: Delivery<string> | undefined;
  let finish: (() => void) | undefined;
  queue.subscribe((_, given) => {
    delivery = given;
    return new Promise<void>((resolve) => (finish = resolve));
  });
  await eventually(() => delivery !== undefined);
  const { signal } = delivery as Delivery<string>;
  const [[entryId]] = (await redis.xrange(stream, "-", "+")) as [[string, string[]]];
  await redis.xclaim(stream, "default", "another", 0, entryId);
  await eventually(() => signal.aborted);
  expect(String(signal.reason)).toContain("lease");
  expect(await delivery?.ack()).toBe(false);
  expect(await delivery?.nack()).toBe(false);
  expect(await delivery?.reject()).toBe(false);
  finish?.();
  // The other consumer holds it.
  const [, , , consumers] = await redis.xpending(stream, "default");
  expect(consumers).toEqual([["another", "1"]]);
});

test("the first 1,000 characters of the reason of a reject or nack are kept", async () => {
  const queue = newLine().getReliableQueue<string>(uniqueName(), { maxAttempts: 1 });
  await queue.offerMany(["a", "b", "c", "d"].map((payload) => ({ payload, delay: 0 })));
  const settle = {
    a: (delivery: Delivery) => delivery.reject("spoilt"),
    b: (delivery: Delivery) => delivery.reject(),
    c: (delivery: Delivery) => delivery.nack({ reason: "x".repeat(5000) }),
    d: (delivery: Delivery) => delivery.nack(),
  };
  for (const letter of ["a", "b", "c", "d"] as const) {
    const delivery = await queue.take();
    expect(delivery.payload).toBe(letter);
    expect(await settle[letter](delivery)).toBe(true);
  }
  const letters = await collect(queue.deadLetters);
  const reasons = letters.map(({ reason }) => reason);
  expect(reasons).toEqual(["spoilt", "rejected", "x".repeat(1000), "nack"]);
});

test("a settlement whose reply is lost rejects, and works when it is called again", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const line = newLineThatMayFail({
    redis: { port: server.port, maxRetriesPerRequest: 0 },
    callTimeout: 2_000,
  });
  const queue = line.getReliableQueue<string>(uniqueName());
  await queue.offerMany(["a", "b"].map((payload) => ({ payload, delay: 0 })));
  const deliveries = await queue.takeMany({ limit: 2 });
  expect(deliveries.length).toBe(2);
  const [a, b] = deliveries as [Delivery<string>, Delivery<string>];
  await server.kill();
  const all = await Promise.allSettled([a.ack(), b.nack(), a.reject(), b.extend(1000)]);
  for (const outcome of all) {
    expect(outcome).toMatchObject({
      status: "rejected",
      reason: expect.any(RedisError) as unknown,
    });
  }
  await server.restart();
  await eventually(async () => expect(await line.serverTime()).toBeGreaterThan(0));
  await eventually(async () => expect(await a.ack()).toBe(true));
  await eventually(async () => expect(await b.nack({ delay: 0 })).toBe(true));
  const again = await queue.take();
  expect(again).toMatchObject({ payload: "b", attempt: 2 });
  expect(await again.ack()).toBe(true);
});

test("an extension may be longer than Node's longest timer", async () => {
  const queue = newLine().getReliableQueue<string>(uniqueName());
  await queue.offer("x", 0);
  const delivery = await queue.take();
  expect(await delivery.extend(2 ** 31)).toBe(true);
  expect(await queue.poll(50)).toBeUndefined();
  expect(delivery.signal.aborted).toBe(false);
  expect(await delivery.ack()).toBe(true);
});

test("large messages that fail in one turn are sent in several scripts of about a megabyte each", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name, { codec: "string" });
  const payload = "x".repeat(100_000);
  await queue.offerMany(Array.from({ length: 25 }, () => ({ payload, delay: 0 })));
  const deliveries: Delivery<string>[] = [];
  while (deliveries.length < 25) deliveries.push(...(await queue.takeMany({ limit: 25 })));
  const counts: number[] = [];
  const onRun = (run: unknown) => {
    const { script, key, rows } = run as ScriptEvent;
    if (script === "retry-later" && key === queueKeys(name).stream) counts.push(rows);
  };
  subscribe("delayline:script", onRun);
  onTestFinished(() => void unsubscribe("delayline:script", onRun));
  const nacked = await Promise.all(deliveries.map((delivery) => delivery.nack({ delay: 60_000 })));
  expect(nacked).toEqual(Array.from({ length: 25 }, () => true));
  expect(counts).toEqual([10, 10, 5]);
});
