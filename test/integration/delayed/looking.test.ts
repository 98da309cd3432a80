import { describe, expect, test } from "vitest";
import type { DelayedMessage } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { createId, packMember } from "../../../src/queue/message/message.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

function open() {
  const name = uniqueName("looking");
  const line = newLine({ transfer: false });
  return { name, line, queue: line.getDelayedQueue<string>(name), redis: newRedis() };
}

const payloads = (messages: readonly DelayedMessage<string>[]): string[] =>
  messages.map(({ payload }) => payload);

describe("find", () => {
  test("finds all messages whose key begins with the prefix, each once, and no other", async () => {
    const { queue } = open();
    const keys = Array.from({ length: 1500 }, (_, i) => `order:${i}`);
    await queue.offerMany(keys.map((key) => ({ payload: key, delay: HOUR, key })));
    await queue.offer("other", HOUR, { key: "invoice:1" });
    await queue.offer("without a key", HOUR);
    const found = await collect(queue.find({ prefix: "order:" }));
    expect(payloads(found).toSorted()).toEqual(keys.toSorted());
    expect(found[0]).toEqual(await queue.get(found[0]?.key ?? ""));
    expect(payloads(await collect(queue.find({ prefix: "order:149" })))).toHaveLength(11);
    expect(await collect(queue.find({ prefix: "ORDER" }))).toEqual([]);
  });

  test("takes the special characters of a pattern literally", async () => {
    const { queue } = open();
    for (const key of ["a*1", "ab1", "[x]1", "x1"]) await queue.offer(key, HOUR, { key });
    expect(payloads(await collect(queue.find({ prefix: "a*" })))).toEqual(["a*1"]);
    expect(payloads(await collect(queue.find({ prefix: "[x]" })))).toEqual(["[x]1"]);
  });

  test("replies with large messages a few at a time", async () => {
    const { queue } = open();
    const large = "x".repeat(200_000);
    for (let i = 0; i < 40; i++) await queue.offer(large, HOUR, { key: `large:${i}` });
    const found = await collect(queue.find({ prefix: "large:" }));
    expect(new Set(found.map(({ key }) => key)).size).toBe(40);
    expect(found).toHaveLength(40);
  });

  test("skips messages that have gone, and messages that the codec cannot read, which are reported", async () => {
    const { queue, name } = open();
    for (const key of ["k:1", "k:2", "k:3"]) await queue.offer(key, HOUR, { key });
    await queue.cancel("k:2");
    expect(payloads(await collect(queue.find({ prefix: "k:" }))).toSorted()).toEqual([
      "k:1",
      "k:3",
    ]);
    const line = newLineThatMayFail({ transfer: false });
    const asJson = line.getDelayedQueue(name, { codec: "json" });
    expect(await collect(asJson.find({ prefix: "k:1" }))).toEqual([]);
    await eventually(() => expect(line.errors).toMatchObject([{ code: "DECODE" }]));
  });
});

describe("an index field that looks like a message id", () => {
  test("is no key: cancelWhere and find do not take it for that message", async () => {
    const { queue, name, redis } = open();
    const { id } = await queue.offer("innocent", HOUR);
    await redis.hset(queueKeys(name).businessKeys, id, Buffer.alloc(25));
    const prefix = id.slice(0, 20);
    expect(await queue.cancelWhere({ prefix })).toEqual({ count: 0, keys: [] });
    expect(await collect(queue.find({ prefix }))).toEqual([]);
    expect((await queue.get(id))?.payload).toBe("innocent");
  });
});

describe("soonest", () => {
  test("goes by deadline, not by insertion", async () => {
    const { queue } = open();
    for (const hours of [5, 1, 4, 2, 3]) await queue.offer(String(hours), hours * HOUR);
    expect(payloads(await collect(queue.soonest()))).toEqual(["1", "2", "3", "4", "5"]);
    expect(payloads(await collect(queue.soonest(2)))).toEqual(["1", "2"]);
    expect(await collect(queue.soonest(0))).toEqual([]);
    const [first] = await collect(queue.soonest(1));
    expect(first).toEqual(await queue.get(first?.id as string));
  });

  test("returns thousands of equal deadlines, each once, in the order of the offers", async () => {
    const { queue } = open();
    const at = Date.now() + HOUR;
    const all = Array.from({ length: 3000 }, (_, i) => `${i}`);
    for (let i = 0; i < all.length; i += 500) {
      await Promise.all(all.slice(i, i + 500).map((payload) => queue.offerAt(payload, at)));
    }
    await queue.offerAt("last", at + 1);
    expect(payloads(await collect(queue.soonest()))).toEqual([...all, "last"]);
    expect(await collect(queue.soonest(1234))).toHaveLength(1234);
  });

  test("returns every message that stays exactly once while others leave and move about", async () => {
    const { queue } = open();
    const at = Date.now() + HOUR;
    const offer = (i: number) => queue.offerAt(`${i}`, at + (i % 3), { key: `${i}` });
    await Promise.all(Array.from({ length: 2000 }, (_, i) => offer(i)));
    const seen: string[] = [];
    for await (const { payload } of queue.soonest()) {
      seen.push(payload);
      const i = Number(payload);
      // The message at the reader's position leaves, and others before and behind it.
      if (i % 5 === 0) await queue.cancel(payload);
      // Moved behind all others.
      if (i % 7 === 0) await queue.rescheduleAt(payload, at + 10);
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toHaveLength(2000);
  });

  test("skips entries written by other programs", async () => {
    const { queue, name, redis } = open();
    const { timeouts } = queueKeys(name);
    const at = Date.now() + HOUR;
    await queue.offerAt("first", at);
    await redis.zadd(timeouts, at, "garbage", at, "", at + 0.5, "\0\0", "-inf", "x", "inf", "y");
    const id = createId(1);
    await redis.zadd(timeouts, "inf", packMember(id, Buffer.from([0xa1, 0x7a])));
    await queue.offerAt("last", at + 1);
    expect(payloads(await collect(queue.soonest()))).toEqual(["first", "last", "z"]);
  });
});

describe("rescheduleAt and promote", () => {
  test("rescheduleAt takes a date or epoch milliseconds, an id or a key", async () => {
    const { queue } = open();
    const { id } = await queue.offer("x", HOUR, { key: "k" });
    const at = Date.now() + 2 * HOUR;
    const moved = await queue.rescheduleAt("k", new Date(at));
    expect(moved).toEqual({ id: (await queue.get("k"))?.id, deadline: at });
    expect(moved?.id).not.toBe(id);
    expect(await queue.rescheduleAt(moved?.id ?? "", at + 0.5)).toMatchObject({ deadline: at + 1 });
    expect(await queue.rescheduleAt(id, at)).toBeUndefined();
    expect(await queue.rescheduleAt("k", at + 1)).toMatchObject({ deadline: at + 1 });
  });

  test("rescheduleAt an instant in the past makes a message due at once", async () => {
    const { queue, name } = open();
    await queue.offer("x", HOUR, { key: "k" });
    const mover = newLine().getBlockingQueue(name);
    expect(await queue.rescheduleAt("k", new Date(1000))).toMatchObject({ deadline: 1000 });
    expect(await mover.take()).toBe("x");
  });

  test("promote makes a message due now, behind those already due, and wakes transfer tasks", async () => {
    const { queue, name, line } = open();
    await queue.offer("later", HOUR);
    await queue.offer("due", 0);
    const { id } = await queue.offer("chosen", HOUR, { key: "k" });
    const before = await line.serverTime();
    const promoted = await queue.promote("k");
    expect(promoted?.deadline).toBeGreaterThanOrEqual(Math.floor(before) - 5);
    expect(promoted?.deadline).toBeLessThanOrEqual(await line.serverTime());
    expect(await queue.promote(promoted?.id ?? "")).toEqual(promoted);
    expect(await queue.promote(id)).toBeUndefined();
    const ready = newLine().getBlockingQueue(name);
    expect(await ready.take()).toBe("due");
    expect(await ready.take()).toBe("chosen");
    // The transfer task now sleeps for an hour, unless a wake-up comes.
    await queue.offer("next", HOUR, { key: "k" });
    await queue.promote("k");
    expect(await ready.take()).toBe("next");
  });
});
