import { describe, expect, test } from "vitest";
import type { OfferOptions, ReliableQueue } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const LATER = 60_000;

/** Offers a message, takes it, and fails: it waits for its retry. */
async function failOnce(
  queue: ReliableQueue<string>,
  key: string,
  payload = "first",
  options?: OfferOptions,
) {
  const { id } = await queue.offer(payload, 0, { key, ...options });
  const delivery = await queue.take();
  expect(delivery).toMatchObject({ id, key });
  await delivery.nack({ delay: LATER, reason: "busy" });
  return id;
}

describe.each([
  ["ordinary", {}],
  ["partitioned", { partitions: 3 }],
])("%s: while a message retries, its key", (_, options) => {
  const open = (name = uniqueName()) => newLine().getReliableQueue<string>(name, options);

  test("finds it", async () => {
    const queue = open();
    const id = await failOnce(queue, "order:1");
    const byId = await queue.get(id);
    expect(byId).toMatchObject({ id, payload: "first", failures: [{ reason: "busy" }] });
    expect(await queue.get("order:1")).toEqual(byId);
    expect(await queue.has("order:1")).toBe(true);
    expect(await collect(queue.find({ prefix: "order:" }))).toEqual([byId]);
    const found = await queue.cancelWhere({ prefix: "order:" }, { dryRun: true });
    expect(found).toEqual({ count: 1, keys: ["order:1"] });
  });

  test("reschedules and promotes it: its id stays", async () => {
    const queue = open();
    const id = await failOnce(queue, "k");
    const before = (await queue.get(id))?.deadline ?? 0;
    const later = await queue.reschedule("k", 3 * LATER);
    expect(later?.id).toBe(id);
    expect(later?.deadline).toBeGreaterThan(before + LATER);
    expect((await queue.promote("k"))?.id).toBe(id);
    const again = await queue.take();
    expect(again).toMatchObject({ id, key: "k", attempt: 2 });
    // It is in flight, and its key is free.
    expect([await queue.has("k"), await queue.promote("k")]).toEqual([false, undefined]);
    await again.nack({ delay: LATER });
    expect(await queue.get("k")).toMatchObject({ id, failures: [{}, {}] });
  });

  test("cancels it, by itself or by its prefix", async () => {
    const queue = open();
    await failOnce(queue, "a:1");
    expect(await queue.cancelMany(["a:1", "a:1"])).toEqual([true, false]);
    await failOnce(queue, "a:2");
    expect(await queue.cancelWhere({ prefix: "a:" })).toEqual({ count: 1, keys: ["a:2"] });
    expect(await queue.size()).toBe(0);
    expect(await queue.poll(50)).toBeUndefined();
    expect((await queue.offer("next", LATER, { key: "a:1" })).outcome).toBe("added");
  });

  test("rejects a second offer, with its id and when it is due", async () => {
    const queue = open();
    const id = await failOnce(queue, "k");
    const { deadline } = (await queue.get(id)) ?? {};
    const second = await queue.offer("second", 0, { key: "k" });
    expect(second).toEqual({ id, deadline, outcome: "existing" });
    const [third] = await queue.offerMany([{ payload: "third", delay: 0, key: "k" }]);
    expect(third).toEqual(second);
    expect(await queue.size()).toBe(1);
    await queue.promote("k");
    await (await queue.take()).ack();
    expect((await queue.offer("fourth", LATER, { key: "k" })).outcome).toBe("added");
  });

  test.each(["replace", "update"] as const)(
    "lets an offer take its place (%s): a new message, whose attempts begin anew",
    async (onDuplicate) => {
      const queue = open();
      const id = await failOnce(queue, "k");
      const old = await queue.get(id);
      const second = await queue.offer("second", 2 * LATER, { key: "k", onDuplicate });
      expect(second.outcome).toBe(onDuplicate === "update" ? "updated" : "replaced");
      if (onDuplicate === "update") expect(second.deadline).toBe(old?.deadline);
      else expect(second.deadline).toBeGreaterThan((old?.deadline ?? 0) + LATER / 2);
      expect(second.id).not.toBe(id);
      expect(await queue.get(id)).toBeUndefined();
      expect(await queue.size()).toBe(1);
      await queue.promote("k");
      const delivery = await queue.take();
      expect(delivery).toMatchObject({ payload: "second", attempt: 1, failures: [] });
      await delivery.ack();
      expect(await queue.poll(50)).toBeUndefined();
    },
  );

  test("is bound by maxWait from the offer that replaces it", async () => {
    const queue = open();
    const rule = { onDuplicate: "replace", maxWait: LATER } as const;
    await failOnce(queue, "k", "first", rule);
    await new Promise((resolve) => setTimeout(resolve, 30));
    const first = await queue.offer("second", 5 * LATER, { key: "k", ...rule });
    const again = await queue.offer("third", 5 * LATER, { key: "k", ...rule });
    expect(first.outcome).toBe("replaced");
    const due = first.deadline - (await queue.get("k").then((one) => one?.deadline ?? 0));
    expect(Math.abs(due)).toBeLessThan(3);
    expect(again.deadline).toBe(first.deadline);
  });

  test("stays with a newer message that took it meanwhile: then only the id finds the older one", async () => {
    const queue = open();
    const { id } = await queue.offer("old", 0, { key: "k" });
    const delivery = await queue.take();
    const newer = await queue.offer("new", 2 * LATER, { key: "k" });
    expect(newer.outcome).toBe("added");
    await delivery.nack({ delay: LATER });
    expect(await queue.get("k")).toMatchObject({ id: newer.id, payload: "new" });
    expect(await queue.get(id)).toMatchObject({ payload: "old", key: "k" });
    expect(await queue.cancel("k")).toBe(true);
    // Free, although the older message waits.
    expect(await queue.has("k")).toBe(false);
    expect(await queue.cancel(id)).toBe(true);
    expect(await queue.size()).toBe(0);
  });

  test("is free once it is a dead letter, and held again after a redrive", async () => {
    const queue = open();
    const { id } = await queue.offer("x", 0, { key: "k" });
    await (await queue.take()).nack({ delay: 0 });
    await (await queue.take()).reject("no");
    expect(await queue.has("k")).toBe(false);
    await queue.deadLetters.redrive(id, { delay: LATER });
    expect((await queue.offer("y", 0, { key: "k" })).id).toBe(id);
    expect(await queue.cancel("k")).toBe(true);
  });
});

test("a message that two groups retry holds its key until the last one has it again", async () => {
  const name = uniqueName();
  const line = newLine();
  const a = line.getReliableQueue<string>(name, { group: "a" });
  const b = line.getReliableQueue<string>(name, { group: "b" });
  await b.size();
  await b.poll(0);
  const fail = async (id: string, delays: readonly [number, number]) => {
    for (const [i, queue] of [a, b].entries()) {
      const delivery = await queue.take();
      expect(delivery.id).toBe(id);
      await delivery.nack({ delay: delays[i] ?? 0 });
    }
  };
  const first = await a.offer("x", 0, { key: "k" });
  await fail(first.id, [0, LATER]);
  const again = await a.take();
  expect(again).toMatchObject({ id: first.id, attempt: 2 });
  // In flight for one group, retrying in the other.
  expect(await a.get("k")).toMatchObject({ id: first.id });
  expect((await a.offer("y", 0, { key: "k" })).outcome).toBe("existing");
  expect(await a.cancel("k")).toBe(true);
  await again.ack();
  expect(await b.poll(50)).toBeUndefined();

  const second = await a.offer("x", 0, { key: "k" });
  await fail(second.id, [LATER, LATER]);
  expect((await a.offer("z", 0, { key: "k", onDuplicate: "replace" })).outcome).toBe("replaced");
  for (const queue of [a, b]) {
    const delivery = await queue.take();
    expect(delivery).toMatchObject({ payload: "z", attempt: 1 });
    await delivery.ack();
    expect(await queue.poll(50)).toBeUndefined();
  }
});

test("the index keeps no entry of a retry that came back, and the entries of those that wait", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<string>(name);
  const redis = newRedis();
  const { businessKeys } = queueKeys(name);
  await failOnce(queue, "waits");
  // The last delayed message becomes ready: the entries of retries stay.
  await failOnce(queue, "comes back");
  expect((await redis.hkeys(businessKeys)).toSorted()).toEqual(["comes back", "waits"]);
  await queue.promote("comes back");
  const delivery = await queue.take();
  expect(await redis.hkeys(businessKeys)).toEqual(["waits"]);
  await delivery.ack();
  // Dropping the delayed messages leaves the retries their keys.
  const plain = newLine().getDelayedQueue<string>(name);
  await plain.offer("delayed", LATER, { key: "delayed" });
  expect(await plain.clear()).toBe(1);
  expect(await queue.has("waits")).toBe(true);
  expect(await queue.clear()).toBe(1);
  expect(await redis.exists(businessKeys)).toBe(0);
});

test("a plain handle of a reliable queue sees the key as well", async () => {
  const name = uniqueName();
  const line = newLine();
  const id = await failOnce(line.getReliableQueue<string>(name), "k");
  const plain = newLine().getDelayedQueue<string>(name);
  expect(await plain.has("k")).toBe(true);
  expect((await plain.offer("again", 0, { key: "k" })).id).toBe(id);
  expect(await plain.cancel("k")).toBe(true);
  expect(await plain.cancel(id)).toBe(false);
});

test("made plain, the queue still finds the message by its key", async () => {
  const name = uniqueName();
  const line = newLine();
  await failOnce(line.getReliableQueue<string>(name, { leaseTimeout: 1000 }), "k");
  await line.close();
  const plain = newLine().getDelayedQueue<string>(name);
  expect((await plain.makePlain()).isPlain).toBe(true);
  expect(await plain.get("k")).toMatchObject({ key: "k", payload: "first" });
  expect((await plain.offer("again", 0, { key: "k" })).outcome).toBe("existing");
  expect(await plain.cancel("k")).toBe(true);
});

test("the key moves with its retry to another partition", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<string>(name, { partitions: 2 });
  const keys = Array.from({ length: 12 }, (_, i) => `order:${i}`);
  const ids: string[] = [];
  for (const key of keys) ids.push(await failOnce(queue, key));
  for (const count of [5, 3]) {
    await line.setPartitions(name, count);
    for (const [i, key] of keys.entries()) {
      expect(await queue.get(key, { partitionKey: key })).toMatchObject({ id: ids[i] });
      expect(await queue.offer("again", 0, { key })).toMatchObject({ id: ids[i] });
    }
  }
  expect(await queue.size()).toBe(keys.length);
  expect(await queue.cancelMany(keys)).toEqual(keys.map(() => true));
});

test("a message that was in flight while the number grew is found by its key in its old partition", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<string>(name, { partitions: 2 });
  const keys = Array.from({ length: 12 }, (_, i) => `order:${i}`);
  const offers = await queue.offerMany(keys.map((key) => ({ payload: key, delay: 0, key })));
  const held = [];
  for (const _ of keys) held.push(await queue.take());
  await line.setPartitions(name, 7);
  for (const delivery of held) await delivery.nack({ delay: 60_000 });
  for (const [i, key] of keys.entries()) {
    const found = { id: offers[i]?.id, payload: key };
    expect(await queue.get(key)).toMatchObject(found);
    expect(await queue.get(key, { partitionKey: key })).toMatchObject(found);
    expect(await queue.has(key, { partitionKey: key })).toBe(true);
    expect((await queue.reschedule(key, 90_000, { partitionKey: key }))?.id).toBe(found.id);
    expect(await queue.cancel(key, { partitionKey: key })).toBe(true);
  }
  expect(await queue.size()).toBe(0);
});
