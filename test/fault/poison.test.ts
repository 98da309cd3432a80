import { expect, test } from "vitest";
import { DecodeError, QuarantineError } from "../../src/index.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";

/* Unreadable bytes under the queue's keys. They go to the quarantine and are reported, and the other messages flow. */

/** `idLength(1) | id | payloadLength(8, LE) | payload`, with whatever length the caller claims. */
function member(id: Buffer, payload: Buffer, claimed = BigInt(payload.length)): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(claimed);
  return Buffer.concat([Buffer.from([id.length]), id, length, payload]);
}

/** Redisson before 3.21.1: `random(8) | payloadLength(8, LE) | payload`. */
function oldMember(payload: Buffer): Buffer {
  return member(Buffer.alloc(8, 0x7f), payload).subarray(1);
}

const id = Buffer.alloc(16, 0xab);
const poisons = new Map<string, Buffer>([
  ["empty", Buffer.alloc(0)],
  ["one byte", Buffer.from([16])],
  ["eight bytes", Buffer.alloc(8, 1)],
  ["garbage", Buffer.from("this is not a message at all, but it is long enough to be one")],
  ["an id cut short", member(id, Buffer.from("x")).subarray(0, 12)],
  ["a length cut short", member(id, Buffer.from("x")).subarray(0, 20)],
  ["a length beyond the end", member(id, Buffer.from("payload"), 8n)],
  ["a length of 2^32", member(id, Buffer.from("payload"), 2n ** 32n)],
  ["a length of 2^63", member(id, Buffer.from("payload"), 2n ** 63n)],
  ["the greatest length", member(id, Buffer.from("payload"), 2n ** 64n - 1n)],
  ["an id's length that lies", Buffer.concat([Buffer.from([255]), Buffer.alloc(30, 9)])],
]);

/** A queue with a good message before and after each of these members. */
async function queueAround(members: Iterable<Buffer>, interop: "none" | "redisson" = "none") {
  const name = uniqueName();
  const redis = newRedis();
  const timeouts = `redisson_delay_queue_timeout:{${name}}`;
  const queue = newLine({ transfer: false, codec: "string", interop }).getDelayedQueue<string>(
    name,
  );
  let deadline = Date.now() - 10_000;
  const good: string[] = [];
  const offer = async () => {
    good.push(`good ${good.length}`);
    await queue.offerAt(good.at(-1) ?? "", new Date(deadline++));
  };
  await offer();
  for (const bytes of members) {
    await redis.zadd(timeouts, deadline++, bytes);
    // Java would have put it here as well.
    await redis.rpush(`redisson_delay_queue:{${name}}`, bytes);
    await offer();
  }
  const quarantined = () => redis.lrangeBuffer(`delayline_unreadable:{${name}}`, 0, -1);
  return { name, redis, timeouts, good, quarantined };
}

test.for(["none", "redisson"] as const)(
  "members that cannot be unpacked are put aside, and the rest flows (interop: %s)",
  async (interop) => {
    const members = [...poisons.values()];
    const { name, redis, timeouts, good, quarantined } = await queueAround(members, interop);

    const line = newLineThatMayFail({ codec: "string", interop });
    const queue = line.getBlockingQueue<string>(name);
    const received: string[] = [];
    while (received.length < good.length) received.push(await queue.take());
    expect(received).toEqual(good);

    expect(await quarantined()).toEqual(members);
    expect(await redis.zcard(timeouts)).toBe(0);
    expect(await redis.llen(`redisson_delay_queue:{${name}}`)).toBe(0);
    expect(line.errors).toEqual([expect.any(QuarantineError)]);
    expect(line.errors[0]).toMatchObject({
      code: "QUARANTINED",
      queue: name,
      count: members.length,
    });
  },
);

test.for([...poisons.keys()])("a single poisonous member is put aside: %s", async (kind) => {
  const bytes = poisons.get(kind) ?? Buffer.alloc(0);
  const { name, good, quarantined } = await queueAround([bytes]);
  const line = newLineThatMayFail({ codec: "string" });
  const queue = line.getBlockingQueue<string>(name);
  expect([await queue.take(), await queue.take()]).toEqual(good);
  expect(await quarantined()).toEqual([bytes]);
  expect(line.errors).toEqual([expect.any(QuarantineError)]);
});

test("a full batch of poison holds no message up", async () => {
  const many = Array.from({ length: 250 }, (_, i) => Buffer.from(`poison ${i}`));
  const { name, good, quarantined } = await queueAround(many);
  const line = newLineThatMayFail({ codec: "string" });
  const queue = line.getBlockingQueue<string>(name);
  const received: string[] = [];
  while (received.length < good.length) received.push(...(await queue.takeMany({ limit: 1000 })));
  expect(received).toEqual(good);
  expect(await quarantined()).toEqual(many);
  const counts = line.errors.map((error) => (error instanceof QuarantineError ? error.count : NaN));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(250);
});

test("a message in the layout of Redisson before 3.21.1 is a good one", async () => {
  const payloads = ["old", "", "x".repeat(300)].map((text) => Buffer.from(text));
  const { name, good, quarantined } = await queueAround(payloads.map(oldMember));
  const line = newLine({ codec: "string" });
  const queue = line.getBlockingQueue<string>(name);
  const received: string[] = [];
  while (received.length < good.length + payloads.length) received.push(await queue.take());
  expect(received).toEqual(["good 0", "old", "good 1", "", "good 2", "x".repeat(300), "good 3"]);
  expect(await quarantined()).toEqual([]);
  expect(line.errors).toEqual([]);
});

test("poison in the middle of the insertion order does not stop its readers", async () => {
  const { name, good, quarantined } = await queueAround(poisons.values());
  const line = newLine({ transfer: false, codec: "string" });
  const queue = line.getDelayedQueue<string>(name);
  expect(await queue.size()).toBe(good.length + poisons.size);
  expect(await queue.insertionOrder.readAll()).toEqual(good);
  expect(await queue.insertionOrder.contains(good.at(-1) ?? "")).toBe(true);
  expect(await queue.insertionOrder.poll(1000)).toEqual(good);
  expect(await quarantined()).toEqual([...poisons.values()]);
});

test("poison with the same deadline as good messages does not hide them", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const line = newLine({ transfer: false, codec: "string" });
  const queue = line.getDelayedQueue<string>(name);
  const date = new Date(Date.now() + 60_000);
  const good = ["a", "b", "c", "d", "e"];
  const ids: string[] = [];
  for (const payload of good) {
    ids.push((await queue.offerAt(payload, date, { key: `key of ${payload}` })).id);
  }
  for (const bytes of poisons.values()) {
    await redis.zadd(`redisson_delay_queue_timeout:{${name}}`, date.getTime(), bytes);
  }

  expect(await queue.insertionOrder.readAll()).toEqual(good);
  expect(await queue.insertionOrder.contains("e")).toBe(true);
  for (const [i, each] of ids.entries()) expect((await queue.get(each))?.payload).toBe(good[i]);
  expect(await queue.cancel(ids[4] ?? "")).toBe(true);
  expect(await queue.cancel("key of d")).toBe(true);
  expect(await queue.insertionOrder.remove("c")).toBe(true);
  expect(await queue.reschedule("key of b", 0)).toBeDefined();
  expect(await queue.insertionOrder.poll()).toBe("a");

  const worker = newLine({ codec: "string" });
  expect(await worker.getBlockingQueue<string>(name).take()).toBe("b");
  expect(await queue.size()).toBe(poisons.size);
});

test("a payload that cannot be decoded: take rejects with its bytes, and the quarantine keeps them", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const bad = Buffer.from("{ no json");
  await redis.rpush(name, '"one"', bad, '"two"');

  const line = newLine({ codec: "json" });
  const queue = line.getBlockingQueue<string>(name);
  expect(await queue.take()).toBe("one");
  const error = await queue.take().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(DecodeError);
  expect(error).toMatchObject({ code: "DECODE", bytes: bad });
  expect(await queue.take()).toBe("two");
  expect(await redis.lrangeBuffer(`delayline_quarantine:{${name}}`, 0, -1)).toEqual([bad]);
});

function noJson(n: number): Buffer {
  return Buffer.from(`{ no json ${n}`);
}

test("payloads that cannot be decoded do not stop a subscription, and every way of taking keeps them", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const line = newLineThatMayFail({ codec: "json" });
  const queue = line.getBlockingQueue<string>(name);

  await redis.rpush(name, noJson(1), '"a"');
  await expect(queue.poll()).rejects.toBeInstanceOf(DecodeError);
  expect(await queue.poll()).toBe("a");
  await redis.rpush(name, noJson(2));
  await expect(queue.poll(1000)).rejects.toBeInstanceOf(DecodeError);
  await redis.rpush(name, noJson(3), '"b"');
  expect(await queue.takeMany({ limit: 10 })).toEqual(["b"]);
  await redis.rpush(name, noJson(4), '"c"');
  expect(await queue.drain()).toEqual(["c"]);

  const received: string[] = [];
  const subscription = queue.subscribe((message) => received.push(message));
  await redis.rpush(name, noJson(5), '"d"', noJson(6), '"e"');
  await eventually(() => received.length === 2);
  await subscription.close();
  expect(received).toEqual(["d", "e"]);

  expect(await redis.lrangeBuffer(`delayline_quarantine:{${name}}`, 0, -1)).toEqual(
    [1, 2, 3, 4, 5, 6].map(noJson),
  );
  // Payloads that no call rejected with are reported.
  expect(line.errors.map((error) => error instanceof DecodeError && error.bytes)).toEqual(
    [3, 4, 5, 6].map(noJson),
  );
});
