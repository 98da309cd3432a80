import { expect, test } from "vitest";
import { RejectError, type DecodeError, type Delivery } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

test("a RejectError makes a dead letter at once, and is not reported as an error", async () => {
  const line = newLine();
  const queue = line.getReliableQueue<number>(uniqueName());
  let count = 0;
  queue.subscribe(() => {
    count++;
    throw new RejectError("spoilt");
  });
  const before = Date.now();
  const { id } = await queue.offer(7, 0, { key: "k" });
  await eventually(async () => (await queue.deadLetters.size()) === 1);
  const [letter] = await collect(queue.deadLetters);
  expect(letter).toMatchObject({
    id,
    payload: 7,
    key: "k",
    headers: undefined,
    attempt: 1,
    reason: "spoilt",
    group: "default",
  });
  expect(Math.abs(Number(letter?.diedAt) - before)).toBeLessThan(10_000);
  expect(count).toBe(1);
});

test("a redriven message starts at attempt 1 with the same id, key and headers, for its own group only", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<string>(name);
  const other = line.getReliableQueue<string>(name, { group: "other" });
  expect(await other.poll()).toBeUndefined();
  const headers = { a: "b" };
  const { id } = await queue.offer("x", 0, { key: "k", headers });
  await (await other.take()).ack();
  await (await queue.take()).nack({ delay: 0 });
  await (await queue.take()).reject("bad");
  const [letter] = await collect(queue.deadLetters);
  expect(letter).toMatchObject({ id, attempt: 2, headers });

  expect(await queue.deadLetters.redrive(id, { delay: 60_000 })).toBe(1);
  expect(await queue.deadLetters.size()).toBe(0);
  expect(await queue.get(id)).toMatchObject({ id, payload: "x" });
  await queue.promote(id);
  const again = await queue.take();
  expect(again).toMatchObject({ id, payload: "x", key: "k", headers, attempt: 1 });
  expect(await other.poll(100)).toBeUndefined();
  await again.ack();
  expect(await newRedis().xlen(queueKeys(name).stream)).toBe(0);
});

test("redrives all letters, removes one, clears all", async () => {
  const queue = newLine().getReliableQueue<number>(uniqueName());
  const kill = async (count: number): Promise<void> => {
    for (const delivery of await takeAll(count)) await delivery.reject();
  };
  const takeAll = async (count: number): Promise<Delivery<number>[]> => {
    const all: Delivery<number>[] = [];
    while (all.length < count) all.push(...(await queue.takeMany({ limit: count })));
    return all;
  };
  const numbers = Array.from({ length: 150 }, (_, i) => i);
  const results = await queue.offerMany(numbers.map((payload) => ({ payload, delay: 0 })));
  const first = results[0]?.id ?? "0-0";
  await kill(150);
  expect(await queue.deadLetters.size()).toBe(150);
  expect(await queue.deadLetters.redrive("all")).toBe(150);
  const again = await takeAll(150);
  expect(again.map(({ payload }) => payload).toSorted((a, b) => a - b)).toEqual(numbers);
  expect(new Set(again.map(({ attempt }) => attempt))).toEqual(new Set([1]));
  for (const delivery of again) await delivery.reject();
  expect(await queue.deadLetters.remove(first as never)).toBe(true);
  expect(await queue.deadLetters.remove(first as never)).toBe(false);
  expect(await queue.deadLetters.redrive(first as never)).toBe(0);
  expect(await queue.deadLetters.clear()).toBe(149);
  expect(await queue.poll()).toBeUndefined();
});

type Taking = [how: string, take: (queue: JsonQueue) => Promise<string | undefined>];
type JsonQueue = ReturnType<typeof openJson>["queue"];

function openJson(name: string) {
  const line = newLineThatMayFail({ codec: "json" });
  return { line, queue: line.getReliableQueue<string>(name) };
}

const takings: Taking[] = [
  ["take", async (queue) => (await ack(await queue.take()))?.payload],
  ["poll", async (queue) => (await ack(await queue.poll(5_000)))?.payload],
  ["takeMany", async (queue) => (await ack((await queue.takeMany({ limit: 10 }))[0]))?.payload],
  [
    "for await",
    async (queue) => {
      for await (const delivery of queue) return (await ack(delivery))?.payload;
      return undefined;
    },
  ],
  [
    "subscribe",
    (queue) =>
      new Promise((resolve) => {
        queue.subscribe(resolve);
      }),
  ],
  [
    "subscribeBatch",
    (queue) =>
      new Promise((resolve) => {
        queue.subscribeBatch(([delivery]) => resolve(delivery?.payload), { limit: 10 });
      }),
  ],
];

async function ack<T>(delivery: Delivery<T> | undefined): Promise<Delivery<T> | undefined> {
  expect(await delivery?.ack()).toBe(true);
  return delivery;
}

test.each(takings)(
  "%s: a message that cannot be decoded becomes a dead letter, and the wait goes on",
  async (_, take) => {
    const name = uniqueName();
    const { line, queue } = openJson(name);
    const raw = newLine({ codec: "string" }).getReliableQueue<string>(name, { group: "none" });
    const { id } = await raw.offer("{not json", 0, { key: "k" });
    const taking = take(queue);
    await eventually(async () => (await queue.deadLetters.size()) === 1);
    await queue.offer("good", 0);
    expect(await taking).toBe("good");

    const [letter] = await collect(queue.deadLetters);
    expect(letter).toMatchObject({ id, payload: undefined, key: "k", attempt: 1 });
    expect(letter?.bytes.toString()).toBe("{not json");
    expect(letter?.reason).toMatch(/cannot decode/);
    expect(line.errors.map(({ code }) => code)).toEqual(["DECODE"]);
    expect((line.errors[0] as DecodeError).bytes.toString()).toBe("{not json");
  },
);

test("poll(0) skips a message that cannot be decoded, and returns the next", async () => {
  const name = uniqueName();
  const { queue } = openJson(name);
  const raw = newLine({ codec: "string" }).getReliableQueue<string>(name, { group: "none" });
  for (const payload of ["{", "[", '"good"']) await raw.offer(payload, 0);
  const { stream } = queueKeys(name);
  await eventually(async () => (await newRedis().xlen(stream)) === 3);
  // The group begins with all of them.
  expect((await ack(await queue.poll()))?.payload).toBe("good");
  expect(await queue.poll()).toBeUndefined();
});

test("an entry in a foreign format goes to the quarantine, and is reported", async () => {
  const name = uniqueName();
  const { stream } = queueKeys(name);
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<string>(name);
  const taking = queue.take();
  await queue.size();
  const redis = newRedis();
  await redis.xadd(stream, "*", "some", "thing");
  await queue.offer("good", 0);
  expect((await taking).payload).toBe("good");
  await (await taking).ack();
  await eventually(async () => (await redis.xlen(stream)) === 0);
  expect(line.errors.map(({ code }) => code)).toEqual(["QUARANTINED"]);
});

test("an entry in a foreign format stays in flight while Redis refuses to put it into the quarantine", async () => {
  const name = uniqueName();
  const { stream, unreadable } = queueKeys(name);
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<string>(name, { leaseTimeout: 1000 });
  const taking = queue.take();
  await queue.size();
  const redis = newRedis();
  await redis.set(unreadable, "no LIST");
  await redis.xadd(stream, "*", "some", "thing");
  await queue.offer("good", 0);
  expect((await taking).payload).toBe("good");
  await (await taking).ack();
  await eventually(() => line.errors.length > 0);
  expect(line.errors).toMatchObject([{ code: "REDIS", reply: "WRONGTYPE" }]);
  expect(await redis.xlen(stream)).toBe(1);

  await redis.del(unreadable);
  await eventually(async () => (await redis.xlen(stream)) === 0);
  expect(await redis.lrange(unreadable, 0, -1)).toEqual(["something"]);
  expect(line.errors).toHaveLength(1);
});

test("a consumer whose messages cannot be reclaimed does not hold up those of another", async () => {
  const name = uniqueName();
  const { stream, unreadable } = queueKeys(name);
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<string>(name, { leaseTimeout: 1000 });
  await queue.offer("first", 0);
  const redis = newRedis();
  await eventually(async () => (await redis.xlen(stream)) === 1);
  await redis.set(unreadable, "no LIST");
  await redis.xadd(stream, "*", "some", "thing");
  await queue.offer("good", 0);
  await eventually(async () => (await redis.xlen(stream)) === 3);
  // By their names, the one with the foreign entry comes between the others.
  for (const consumer of ["dead 1", "dead 2", "dead 3"]) {
    await redis.xreadgroup("GROUP", "default", consumer, "COUNT", 1, "STREAMS", stream, ">");
  }
  const payloads = [await queue.take(), await queue.take()].map(({ payload }) => payload);
  expect(payloads.toSorted()).toEqual(["first", "good"]);
  await eventually(() => line.errors.length > 0);
  expect(line.errors).toMatchObject([{ reply: "WRONGTYPE" }]);
  await redis.del(unreadable);
  await eventually(async () => (await redis.llen(unreadable)) === 1);
  await eventually(() => line.recoveries.length === 1);
});

test("an error whose message is not a string is handled like any other", async () => {
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<string>(uniqueName(), { maxAttempts: 1 });
  queue.subscribe((payload) => {
    const error = payload === "rejected" ? new RejectError() : new TypeError();
    throw Object.assign(error, { message: { code: 7 } });
  });
  await queue.offerMany(["failed", "rejected"].map((payload) => ({ payload, delay: 0 })));
  await eventually(async () => (await queue.deadLetters.size()) === 2);
  const reasons = (await collect(queue.deadLetters)).map(({ reason }) => reason);
  expect(reasons.toSorted()).toEqual(["RejectError", "TypeError"]);
});
