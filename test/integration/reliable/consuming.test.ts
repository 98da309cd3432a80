import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Delivery } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { upTo } from "../../helpers/numbers.ts";

const keyOf = (n: number) => `${n % 5}`;
const readyNow = (payloads: readonly number[]) =>
  payloads.map((payload) => ({ payload, delay: 0 }));

/** Waits until the stream has `count` entries. */
async function readyCount(name: string, count: number): Promise<void> {
  const redis = newRedis();
  await eventually(async () => (await redis.xlen(queueKeys(name).stream)) === count);
}

test("a thousand messages are handled once each, by as many handlers at once as concurrency says", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<number>(name);
  const seen: number[] = [];
  let most = 0;
  const subscription = queue.subscribe(
    async (n) => {
      most = Math.max(most, subscription.running);
      await sleep(1);
      seen.push(n);
    },
    { concurrency: 50 },
  );
  await queue.offerMany(upTo(1000).map((payload) => ({ payload, delay: 10 })));
  await eventually(() => seen.length >= 1000);
  await subscription.close();
  expect(seen.toSorted((a, b) => a - b)).toEqual(upTo(1000));
  expect(most).toBe(50);
  expect(await newRedis().xlen(queueKeys(name).stream)).toBe(0);
});

test("holds no more messages than handlers run", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<number>(name);
  const gate = new Gate();
  const subscription = queue.subscribe(() => gate.opened, { concurrency: 3 });
  await queue.offerMany(readyNow(upTo(10)));
  await eventually(() => subscription.running === 3);
  await readyCount(name, 10);
  const redis = newRedis();
  const [inFlight] = (await redis.xpending(queueKeys(name).stream, "default")) as [number];
  expect(inFlight).toBe(3);
  gate.open();
  await readyCount(name, 0);
});

describe("poll", () => {
  test("returns a ready message without waiting", async () => {
    const name = uniqueName();
    const queue = newLine().getReliableQueue<string>(name);
    expect(await queue.poll()).toBeUndefined();
    await queue.offer("x", 0);
    await readyCount(name, 1);
    const delivery = await queue.poll(0);
    expect(delivery).toMatchObject({ payload: "x", attempt: 1 });
    expect(await queue.poll(0)).toBeUndefined();
    await delivery?.ack();
  });

  test("waits for the timeout", async () => {
    const queue = newLine().getReliableQueue<string>(uniqueName());
    await queue.poll();
    const startedAt = performance.now();
    expect(await queue.poll(200)).toBeUndefined();
    const took = performance.now() - startedAt;
    expect(took).toBeGreaterThan(195);
    // Much earlier than the end of a blocking call, even on a busy machine.
    expect(took).toBeLessThan(4_000);
    const polling = queue.poll(40_000);
    await queue.offer("x", 20);
    const delivery = await polling;
    expect(delivery?.payload).toBe("x");
    await delivery?.ack();
  });

  test("concurrent calls take each message once", async () => {
    const name = uniqueName();
    const queues = [newLine(), newLine()].map((line) => line.getReliableQueue<number>(name));
    const [first] = queues as [(typeof queues)[0]];
    await first.offerMany(readyNow(upTo(40)));
    await readyCount(name, 40);
    const polls = queues.flatMap((queue) => upTo(30).map(() => queue.poll()));
    const taken = (await Promise.all(polls)).filter((delivery) => delivery !== undefined);
    expect(taken.map(({ payload }) => payload).toSorted((a, b) => a - b)).toEqual(upTo(40));
    expect(await Promise.all(taken.map((delivery) => delivery.ack()))).toEqual(
      upTo(40).map(() => true),
    );
  });
});

test("takeMany takes ready messages, up to max, or none if none came in time", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<number>(name);
  expect(await queue.takeMany({ limit: 5, timeout: 20 })).toEqual([]);
  await queue.offerMany(readyNow(upTo(7)));
  await readyCount(name, 7);
  const some = await queue.takeMany({ limit: 5 });
  expect(some.map(({ payload }) => payload)).toEqual([0, 1, 2, 3, 4]);
  const others = await queue.takeMany({ limit: 5, timeout: 0 });
  expect(others.map(({ payload }) => payload)).toEqual([5, 6]);
  // Each delivery is settled separately.
  const [first, second, ...rest] = [...some, ...others] as [
    Delivery<number>,
    Delivery<number>,
    ...Delivery<number>[],
  ];
  expect(
    await Promise.all([
      first.nack({ delay: 60_000 }),
      second.reject(),
      ...rest.map((delivery) => delivery.ack()),
    ]),
  ).toEqual(upTo(7).map(() => true));
  expect(await queue.size()).toBe(1);
  expect(await queue.deadLetters.size()).toBe(1);
  await readyCount(name, 0);
});

describe("subscribeBatch", () => {
  test("acknowledges the messages that the handler has not settled when it returns", async () => {
    const name = uniqueName();
    const queue = newLine().getReliableQueue<number>(name);
    await queue.offerMany(readyNow(upTo(25)));
    await readyCount(name, 25);
    const sizes: number[] = [];
    queue.subscribeBatch(
      async (deliveries) => {
        sizes.push(deliveries.length);
        const [first] = deliveries;
        if (first?.payload === 0) await first.nack({ delay: 60_000 });
      },
      { limit: 10 },
    );
    await readyCount(name, 0);
    expect(sizes).toEqual([10, 10, 5]);
    expect(await queue.size()).toBe(1);
  });

  test("retries the messages that a throwing handler has not settled, and reports the error once", async () => {
    const line = newLine();
    const queue = line.getReliableQueue<number>(uniqueName(), { retry: [0], maxAttempts: 2 });
    const attempts: number[] = [];
    const told: number[] = [];
    await queue.offerMany(readyNow(upTo(3)));
    queue.subscribeBatch(
      async (deliveries) => {
        for (const { attempt } of deliveries) attempts.push(attempt);
        await deliveries.find(({ payload }) => payload === 0)?.ack();
        throw new Error("no");
      },
      { limit: 10, onError: (_, deliveries) => told.push(deliveries.length) },
    );
    await eventually(async () => (await queue.deadLetters.size()) === 2);
    expect(attempts).toEqual([1, 1, 1, 2, 2]);
    await eventually(() => told.reduce((sum, count) => sum + count, 0) === 5);
    const letters = await collect(queue.deadLetters);
    expect(new Set(letters.map(({ payload }) => payload))).toEqual(new Set([1, 2]));
  });
});

describe("orderBy", () => {
  test("messages of one sequence run one by one, in order, and different sequences run side by side", async () => {
    const queue = newLine().getReliableQueue<number>(uniqueName());
    const running = new Map<string, number>();
    const seen = new Map<string, number[]>();
    let isTwiceAtOnce = false;
    let most = 0;
    queue.subscribe(
      async (n) => {
        const key = keyOf(n);
        if (running.has(key)) isTwiceAtOnce = true;
        running.set(key, n);
        most = Math.max(most, running.size);
        await sleep(Math.random() * 4);
        running.delete(key);
        seen.set(key, [...(seen.get(key) ?? []), n]);
      },
      { concurrency: 20, orderBy: keyOf },
    );
    await queue.offerMany(readyNow(upTo(300)));
    await eventually(() => [...seen.values()].flat().length === 300);
    expect(isTwiceAtOnce).toBe(false);
    expect(most).toBe(5);
    for (const some of seen.values()) expect(some).toEqual(some.toSorted((a, b) => a - b));
  });

  test("may use the delivery; undefined means no order; an error of orderBy fails the handler", async () => {
    const line = newLineThatMayFail();
    const queue = line.getReliableQueue<string>(uniqueName(), { maxAttempts: 1 });
    let count = 0;
    queue.subscribe(() => count++, {
      orderBy: (payload, { key }) => {
        if (payload === "bad") throw new Error("no order");
        return key;
      },
    });
    await queue.offer("a", 0, { key: "k" });
    await queue.offer("bad", 0);
    await queue.offer("b", 0);
    await eventually(() => count === 2);
    await eventually(async () => (await queue.deadLetters.size()) === 1);
    const [letter] = await collect(queue.deadLetters);
    expect(letter).toMatchObject({ payload: "bad", reason: "no order" });
  });
});

describe("route", () => {
  test("calls the handler of the longest name that the key begins with", async () => {
    const queue = newLine().getReliableQueue<number>(uniqueName());
    const seen: string[] = [];
    const note =
      (name: string) =>
      (n: number, { attempt }: Delivery<number>) =>
        void seen.push(`${name} ${n} ${attempt}`);
    const subscription = queue.route(
      { app: note("app"), "app:trans": note("trans"), "app:trans:notice": note("notice") },
      { concurrency: 5 },
    );
    const keys = ["app", "app:x", "app:trans:1", "app:trans:notice:2", "app:transfer:3"];
    for (const [i, key] of keys.entries()) await queue.offer(i, 0, { key });
    await eventually(() => seen.length === keys.length);
    expect(seen.toSorted()).toEqual(["app 0 1", "app 1 1", "app 4 1", "notice 3 1", "trans 2 1"]);
    expect([...subscription.unknown]).toEqual([]);
  });

  test("a message is retried if the route's handler throws", async () => {
    const queue = newLineThatMayFail().getReliableQueue<number>(uniqueName(), { retry: [0] });
    const attempts: number[] = [];
    queue.route({
      a: (_, { attempt }) => {
        attempts.push(attempt);
        if (attempt < 3) throw new Error("no");
      },
    });
    await queue.offer(1, 0, { key: "a:1" });
    await eventually(() => attempts.length === 3);
    expect(attempts).toEqual([1, 2, 3]);
  });

  test('unknown "reject", the default, makes a dead letter that names it', async () => {
    const queue = newLine().getReliableQueue<number>(uniqueName());
    const subscription = queue.route({ a: () => {} });
    await queue.offer(1, 0, { key: "b:c:d:1" });
    await queue.offer(2, 0, { key: "b:c:d:2" });
    await queue.offer(3, 0);
    await eventually(async () => (await queue.deadLetters.size()) === 3);
    const letters = await collect(queue.deadLetters);
    expect(letters.map(({ reason }) => reason)).toEqual([
      'no route takes "b:c:d"',
      'no route takes "b:c:d"',
      'no route takes ""',
    ]);
    expect([...subscription.unknown]).toEqual([
      ["b:c:d", 2],
      ["", 1],
    ]);
  });

  test('unknown "ack" acknowledges the message', async () => {
    const name = uniqueName();
    const queue = newLine().getReliableQueue<number>(name);
    const subscription = queue.route({ a: () => {} }, { unknown: "ack" });
    await queue.offer(1, 0, { key: "b" });
    await eventually(() => subscription.unknown.get("b") === 1);
    await readyCount(name, 0);
    expect([await queue.size(), await queue.deadLetters.size()]).toEqual([0, 0]);
  });

  test('unknown "leave" puts the message back for a second, uncounted, for another process that knows it', async () => {
    const name = uniqueName();
    const line = newLine();
    const queue = line.getReliableQueue<number>(name, { maxAttempts: 1 });
    const subscription = queue.route({ a: () => {} }, { unknown: "leave" });
    const before = await line.serverTime();
    const { id } = await queue.offer(1, 0, { key: "b" });
    await eventually(() => (subscription.unknown.get("b") ?? 0) > 0);
    await eventually(async () => {
      const deadline = Number(await queue.nextDeadline());
      expect(deadline - before).toBeGreaterThan(990);
      expect(deadline - (await line.serverTime())).toBeLessThanOrEqual(1001);
    });
    await subscription.close();
    const attempts: number[] = [];
    const other = newLine().getReliableQueue<number>(name, { maxAttempts: 1 });
    other.route({ b: (_, { attempt }) => void attempts.push(attempt) });
    await eventually(() => attempts.length === 1);
    expect(attempts).toEqual([1]);
    expect(await queue.has(id)).toBe(false);
  });
});

describe("for await", () => {
  test("a lease lasts while the body runs, and then for a lease timeout", async () => {
    const name = uniqueName();
    // Longer than a busy machine stands still: a process that does loses its lease.
    const options = { leaseTimeout: 1500 };
    const queue = newLine().getReliableQueue<string>(name, options);
    const other = newLine().getReliableQueue<string>(name, options);
    await queue.offer("slow", 0);
    let left: Delivery<string> | undefined;
    for await (const delivery of queue) {
      // For three lease timeouts no other consumer gets it.
      expect(await other.poll(4500)).toBeUndefined();
      expect(delivery.signal.aborted).toBe(false);
      left = delivery;
      break;
    }
    const again = await other.poll(20_000);
    expect(again).toMatchObject({ payload: "slow", attempt: 2 });
    expect(await left?.ack()).toBe(false);
    await again?.ack();
  });

  test("a delivery that its body did not settle comes back while the loop goes on", async () => {
    const queue = newLine().getReliableQueue<string>(uniqueName(), { leaseTimeout: 100 });
    await queue.offer("x", 0);
    const attempts: number[] = [];
    for await (const delivery of queue) {
      attempts.push(delivery.attempt);
      if (delivery.attempt === 2) {
        await delivery.ack();
        break;
      }
    }
    expect(attempts).toEqual([1, 2]);
  });
});
