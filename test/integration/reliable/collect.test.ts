import { expect, test } from "vitest";
import type { Delivery, ReliableQueue } from "../../../src/index.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/** Offers that collect, as users see them. Each step in Redis: `test/moves/delayed/collect.test.ts`. */

const KEY = { key: "product:7", onDuplicate: "collect" } as const;
const LATER = 60_000;

function newQueue(options: object = {}): ReliableQueue<string> {
  return newLine({ codec: "string" }).getReliableQueue<string>(uniqueName(), options);
}

/** Offers these payloads, one after the other; returns the outcomes. */
async function offerAll(queue: ReliableQueue<string>, payloads: string, more: object = {}) {
  const outcomes: string[] = [];
  for (const payload of payloads)
    outcomes.push((await queue.offer(payload, LATER, { ...KEY, ...more })).outcome);
  return outcomes;
}

async function takeNow(queue: ReliableQueue<string>): Promise<Delivery<string>> {
  await queue.promote(KEY.key);
  return await queue.take();
}

test("one delivery has all payloads, in the order of the offers; the last is its payload", async () => {
  const queue = newQueue();
  expect(await offerAll(queue, "abc")).toEqual(["added", "collected", "collected"]);
  expect(await queue.size()).toBe(1);
  const delivery = await takeNow(queue);
  expect(delivery.payloads).toEqual(["a", "b", "c"]);
  expect(delivery).toMatchObject({ payload: "c", key: KEY.key, attempt: 1, headers: {} });
  expect(await delivery.ack()).toBe(true);
});

test("a message that was offered alone has one payload", async () => {
  const queue = newQueue();
  await queue.offer("a", 0, KEY);
  expect((await queue.take()).payloads).toEqual(["a"]);
  await queue.offer("b", 0);
  expect((await queue.take()).payloads).toEqual(["b"]);
});

test("offers of one turn are one message, and keep their order", async () => {
  const queue = newQueue();
  const messages = Array.from("abcdefgh", (payload) => ({ payload, delay: LATER, ...KEY }));
  const results = await queue.offerMany(messages);
  expect(results.map(({ outcome }) => outcome)).toEqual(["added", ...Array(7).fill("collected")]);
  expect((await takeNow(queue)).payloads.join("")).toBe("abcdefgh");
});

test("a full message is due at once, and the offer begins the next", async () => {
  const queue = newQueue();
  const outcomes = await offerAll(queue, "abcde", { maxCollected: 2 });
  expect(outcomes).toEqual(["added", "collected", "added", "collected", "added"]);
  expect((await queue.take()).payloads).toEqual(["a", "b"]);
  expect((await queue.take()).payloads).toEqual(["c", "d"]);
  expect((await takeNow(queue)).payloads).toEqual(["e"]);
});

test("maxPayloadBytes holds for all payloads together", async () => {
  const queue = newQueue({ maxPayloadBytes: 5 });
  for (const payload of ["aa", "bb", "cc"]) await queue.offer(payload, LATER, KEY);
  expect((await queue.take()).payloads).toEqual(["aa", "bb"]);
  expect((await takeNow(queue)).payloads).toEqual(["cc"]);
});

test("the deadline is that of the last offer, and at most maxWait after the first", async () => {
  const queue = newQueue();
  const first = await queue.offer("a", LATER, KEY);
  const second = await queue.offer("b", 5 * LATER, { ...KEY, maxWait: 2 * LATER });
  expect(second.deadline - first.deadline).toBeGreaterThan(0);
  // The first offer is told by its id, which a process makes by its estimate of the server's clock.
  expect(second.deadline).toBeLessThanOrEqual(first.deadline + LATER + 1000);
  expect((await queue.offer("c", 9 * LATER, KEY)).deadline).toBe(second.deadline);
});

test("headers and conditions are those of the last offer", async () => {
  const queue = newQueue();
  await queue.offer("a", LATER, { ...KEY, headers: { from: "a", only: "a" } });
  await queue.offer("b", LATER, { ...KEY, headers: { from: "b" } });
  expect((await takeNow(queue)).headers).toEqual({ from: "b" });
});

test("what waits shows all payloads: get, find and soonest", async () => {
  const queue = newQueue();
  await offerAll(queue, "ab");
  const [payload, payloads] = ["b", ["a", "b"]];
  expect(await queue.get(KEY.key)).toMatchObject({ payload, payloads });
  for await (const found of queue.find({ prefix: "product:" }))
    expect(found).toMatchObject({ payload, payloads });
  for await (const found of queue.soonest()) expect(found).toMatchObject({ payload, payloads });
  await queue.offer("x", LATER, { key: "other" });
  expect(await queue.get("other")).not.toHaveProperty("payloads");
});

test("ready or running: a new message; it does not touch the one that runs", async () => {
  const queue = newQueue();
  await offerAll(queue, "ab");
  const delivery = await takeNow(queue);
  expect(await offerAll(queue, "cd")).toEqual(["added", "collected"]);
  expect(delivery.payloads).toEqual(["a", "b"]);
  expect(await delivery.ack()).toBe(true);
  expect((await takeNow(queue)).payloads).toEqual(["c", "d"]);
});

test("a retry keeps its payloads, and the key passes from it to what is offered", async () => {
  const queue = newQueue();
  await offerAll(queue, "ab");
  const delivery = await takeNow(queue);
  expect(await delivery.nack({ delay: 400 })).toBe(true);
  expect((await queue.get(KEY.key))?.payloads).toEqual(["a", "b"]);
  expect(await offerAll(queue, "cd")).toEqual(["added", "collected"]);
  expect((await queue.get(KEY.key))?.payloads).toEqual(["c", "d"]);
  const again = await queue.take();
  expect(again).toMatchObject({ attempt: 2, payloads: ["a", "b"] });
  expect((await takeNow(queue)).payloads).toEqual(["c", "d"]);
});

test("a dead letter has all payloads, and a redrive brings them back", async () => {
  const queue = newQueue();
  await offerAll(queue, "abc");
  await (await takeNow(queue)).reject("no");
  for await (const letter of queue.deadLetters)
    expect(letter).toMatchObject({ payload: "c", payloads: ["a", "b", "c"] });
  expect(await queue.deadLetters.redrive("all")).toBe(1);
  expect((await queue.take()).payloads).toEqual(["a", "b", "c"]);
});

test("a message with a payload that the codec cannot read dies whole, and keeps its bytes", async () => {
  const name = uniqueName();
  const line = newLineThatMayFail({ codec: "json" });
  const queue = line.getReliableQueue(name);
  const bytes = newLine({ codec: "bytes" }).getReliableQueue<Uint8Array>(name);
  await bytes.offer(Buffer.from("{"), LATER, KEY);
  await queue.offer({ ok: true }, LATER, KEY);
  await queue.promote(KEY.key);
  queue.subscribe(() => {});
  await eventually(async () => (await queue.deadLetters.size()) === 1);
  for await (const letter of queue.deadLetters)
    expect(letter).toMatchObject({ payload: { ok: true }, payloads: [undefined, { ok: true }] });
  expect(line.errors).toHaveLength(1);
});

test("in a batch each delivery has its payloads", async () => {
  const queue = newQueue();
  await queue.offerMany([
    { payload: "a", delay: LATER, ...KEY },
    { payload: "b", delay: LATER, ...KEY },
    { payload: "x", delay: LATER },
  ]);
  for await (const { id } of queue.soonest()) await queue.promote(id);
  const found: (readonly string[])[] = [];
  while (found.length < 2)
    for (const { payloads } of await queue.takeMany({ limit: 10, timeout: 5000 }))
      found.push(payloads);
  expect(found).toEqual(expect.arrayContaining([["a", "b"], ["x"]]));
});

test("a replacement drops what was collected, and an update as well", async () => {
  const queue = newQueue();
  await offerAll(queue, "ab");
  await queue.offer("c", LATER, { ...KEY, onDuplicate: "replace" });
  expect(await queue.get(KEY.key)).not.toHaveProperty("payloads");
  await offerAll(queue, "d");
  await queue.offer("e", LATER, { ...KEY, onDuplicate: "update" });
  expect((await takeNow(queue)).payloads).toEqual(["e"]);
});

test("an older release delivers the last payload: what is beside it is a field that it skips", async () => {
  const queue = newQueue();
  await offerAll(queue, "ab");
  const redis = newRedis();
  const [member] = await redis.zrangeBuffer(
    `redisson_delay_queue_timeout:{${queue.name}}`,
    "0",
    "-1",
  );
  expect(member?.subarray(17, 26).toString("latin1")).toBe("\x01\0\0\0\0\0\0\0b");
});

test("a plain queue refuses to collect", async () => {
  const queue = newLine({ transfer: false }).getDelayedQueue(uniqueName());
  await expect(queue.offer("a", LATER, KEY)).rejects.toThrow(/needs a reliable queue/);
  expect(await queue.size()).toBe(0);
});
