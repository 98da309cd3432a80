import { expect, onTestFinished, test } from "vitest";
import { RejectError, type Delivery, type FailedAttempt } from "../../../src/index.ts";
import { Inspector } from "../../../src/tools/view/inspector.ts";
import { locate } from "../../../src/tools/view/locate.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newConsumerName } from "../../../src/reliable/group/consumer-name.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

const told = (failures: readonly FailedAttempt[] = []) =>
  failures.map(({ attempt, reason }) => `${attempt} ${reason}`);

test("a message keeps its failures, of every kind, until it is acknowledged", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const line = newLine();
  const options = { retry: [0], leaseTimeout: 500, maxAttempts: 9 };
  const queue = line.getReliableQueue<string>(name, options);
  const other = line.getReliableQueue<string>(name, { ...options, group: "other" });
  expect(await other.poll()).toBeUndefined();
  const { id } = await queue.offer("x", 0, { key: "order:42", headers: { a: "1" } });

  const first = await queue.take();
  expect(first.failures).toEqual([]);
  const before = Date.now();
  await first.nack({ reason: "busy" });
  const second = await queue.take();
  expect(told(second.failures)).toEqual(["1 busy"]);
  expect(Math.abs((second.failures[0]?.at ?? 0) - before)).toBeLessThan(10_000);
  await second.nack();
  // Not settled in time.
  await (await queue.take()).extend(1);
  const fourth = await queue.take();
  await fourth.nack({ reason: "€".repeat(100) });
  // A process takes it, and falls silent.
  const consumer = newConsumerName(1, 8);
  await eventually(async () => {
    const head = ["GROUP", "default", consumer, "COUNT", 1] as const;
    expect(await redis.xreadgroup(...head, "STREAMS", queueKeys(name).stream, ">")).not.toBeNull();
  });
  let seen: readonly FailedAttempt[] = [];
  const subscription = queue.subscribe(
    (_, { attempt, failures }) => {
      seen = failures;
      throw attempt < 7 ? new TypeError("no number") : new RejectError("for good");
    },
    { onError: () => {} },
  );
  await eventually(async () => expect(await queue.deadLetters.size()).toBe(1));
  await subscription.close();
  const six = [
    "1 busy",
    "2 nack",
    "3 the delivery was not settled in time",
    `4 ${"€".repeat(66)}`,
    "5 its consumer died in delivery 5",
    "6 no number",
  ];
  expect(told(seen)).toEqual(six);
  const [letter] = await collect(queue.deadLetters);
  expect(letter).toMatchObject({ id, key: "order:42", headers: { a: "1" }, attempt: 7 });
  expect(told(letter?.failures)).toEqual([...six, "7 for good"]);

  // Attempts start at 1 again, and the failures stay.
  await queue.deadLetters.redrive(id);
  const again = await queue.take();
  expect([again.attempt, again.headers]).toEqual([1, { a: "1" }]);
  expect(told(again.failures)).toEqual([...six, "7 for good"]);
  await again.nack({ delay: HOUR, reason: "still" });
  expect(told((await queue.get(id))?.failures)).toEqual([...six, "7 for good", "1 still"]);
  // Another group has failures of its own.
  expect(await other.take()).toMatchObject({ attempt: 1, failures: [] });
});

test("a message that is given back without an attempt gets no failure and no extra byte", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<string>(name);
  await queue.offer("x", 0, { key: "k" });
  const routed = queue.route({ another: () => {} }, { unknown: "leave" });
  await eventually(() => expect(routed.unknown.get("k")).toBe(1));
  await routed.close();
  const value = async () => (await newRedis().hvals(queueKeys(name).retrying))[0];
  await eventually(async () => expect(await value()).toMatch(/xk$/));
  await queue.deadLetters.clear();
});

test.each([
  ["ordinary", {}],
  ["partitioned", { partitions: 2 }],
])("%s: a message with a bare key is still found, wherever it is", async (_, options) => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<string>(name, { ...options, retry: [0], maxAttempts: 3 });
  const { id } = await queue.offer("x", 0, { key: "order:42" });
  const inspector = new Inspector({ redis: redisUrl() });
  onTestFinished(() => inspector.close());
  const states = async () => {
    const { sightings } = await locate(await inspector.open(name), "order:42");
    return sightings.map(({ state, key, failures }) => [state, key, ...told(failures)]);
  };
  const take = async (): Promise<Delivery> => {
    const delivery = await queue.take();
    expect(delivery).toMatchObject({ id, key: "order:42" });
    return delivery;
  };
  await (await take()).nack({ reason: "one", delay: HOUR });
  expect(await states()).toEqual([["retrying", "order:42", "1 one"]]);
  await queue.promote(id);
  const second = await take();
  expect(await states()).toEqual([["in flight", "order:42", "1 one"]]);
  await second.nack({ reason: "two" });
  await (await take()).nack({ reason: "three" });
  expect(await states()).toEqual([["dead", "order:42", "1 one", "2 two", "3 three"]]);
  await queue.deadLetters.redrive(id, { delay: HOUR });
  expect(told((await queue.get(id))?.failures)).toEqual(["1 one", "2 two", "3 three"]);
  expect(await queue.cancel(id)).toBe(true);
  expect(await states()).toEqual([]);
});

test("failures move with their messages to other partitions, and are dropped in a plain queue", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<number>(name, { partitions: 2, maxAttempts: 2 });
  const ids: string[] = [];
  for (let i = 0; i < 6; i++) {
    ids.push((await queue.offer(i, 0, { key: `k${i}` })).id);
    const delivery = await queue.take();
    if (i < 3) await delivery.nack({ reason: `r${i}`, delay: HOUR });
    else await delivery.reject(`r${i}`);
  }
  await line.setPartitions(name, 5);
  for (const [i, id] of ids.slice(0, 3).entries()) {
    expect(await queue.get(id)).toMatchObject({ key: `k${i}`, failures: [{ reason: `r${i}` }] });
  }
  const letters = await collect(queue.deadLetters);
  const dead = letters.map(({ key, failures }) => `${key}: ${told(failures).join()}`);
  expect(dead.toSorted()).toEqual([3, 4, 5].map((i) => `k${i}: 1 r${i}`));

  const plain = uniqueName();
  const reliable = line.getReliableQueue<string>(plain);
  await reliable.offer("x", 0, { key: "k" });
  await (await reliable.take()).nack({ reason: "busy", delay: HOUR });
  await line.close();
  const after = newLine();
  const delayed = after.getDelayedQueue<string>(plain);
  await eventually(async () => expect(await delayed.makePlain()).toMatchObject({ isPlain: true }));
  const [message] = await collect(delayed.soonest());
  expect(message).toMatchObject({ payload: "x", key: "k" });
  const back = after.getReliableQueue<string>(plain);
  await back.promote(message?.id ?? "");
  expect(await back.take()).toMatchObject({ attempt: 1, failures: [], key: "k" });
});
