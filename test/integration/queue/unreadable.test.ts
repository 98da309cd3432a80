import type { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import {
  DecodeError,
  QuarantineError,
  type BlockingQueue,
  type Codec,
} from "../../../src/index.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { collect } from "../../helpers/collect.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

// Unreadable bytes are never lost: they are in the quarantine, and an error reports them.

const MINUTE = 60_000;
const GARBAGE = "{ no JSON, but 4111-1111";

let redis: Redis;
let name: string;
let keys: QueueKeys;
let line: TestLine;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("unreadable");
  keys = queueKeys(name);
  line = newLineThatMayFail({ codec: "json" });
});

/** The delayed messages, as readers with the JSON codec see them. */
const delayedJson = () => line.getDelayedQueue(name, { transfer: false });

const quarantine = () => redis.lrange(keys.quarantine, 0, -1);
const unreadable = () => redis.lrange(keys.unreadable, 0, -1);

/** The error of a promise that rejects. */
async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => expect.unreachable("this should have been rejected"),
    (reason: unknown) => reason,
  );
}

function expectDecodeError(error: unknown): void {
  expect(error).toBeInstanceOf(DecodeError);
  expect(error).toMatchObject({ code: "DECODE" });
  expect((error as DecodeError).bytes).toEqual(Buffer.from(GARBAGE));
  expect((error as DecodeError).message).toBe(
    `cannot decode a message of ${GARBAGE.length} bytes from queue "${name}" with codec "json": the bytes are not JSON`,
  );
}

describe("a ready message that the codec cannot read", () => {
  let queue: BlockingQueue;

  beforeEach(async () => {
    queue = line.getBlockingQueue(name);
    await redis.rpush(name, GARBAGE, '"good"');
  });

  const ways: [string, () => Promise<unknown>][] = [
    ["take", () => queue.take()],
    ["poll", () => queue.poll()],
    ["poll with a time-out", () => queue.poll(MINUTE)],
    ["pollFromAny", () => queue.pollFromAny([uniqueName("other")])],
    ["pollFromAny with a time-out", () => queue.pollFromAny([uniqueName("other")], MINUTE)],
    ["iteration", () => collect(queue)],
  ];
  test.each(ways)("is in the call's DecodeError, and in the quarantine: %s", async (_, take) => {
    expectDecodeError(await failureOf(take()));
    expect(await quarantine()).toEqual([GARBAGE]);
    expect(await queue.take()).toBe("good");
    expect(line.errors).toEqual([]);
  });

  const manyWays: [string, () => Promise<unknown[]>][] = [
    ["takeMany", () => queue.takeMany({ limit: 10 })],
    ["takeMany without waiting", () => queue.takeMany({ limit: 10, timeout: 0 })],
    ["drain", () => queue.drain()],
  ];
  test.each(manyWays)(
    "does not hold up the others in a call that takes many: %s",
    async (_, take) => {
      expect(await take()).toEqual(["good"]);
      expect(await quarantine()).toEqual([GARBAGE]);
      await eventually(() => line.errors.length === 1);
      expectDecodeError(line.errors[0]);
    },
  );

  test("makes a call that only reads reject, and stays where it is", async () => {
    expectDecodeError(await failureOf(queue.peek()));
    expect(await queue.readAll()).toEqual(["good"]);
    await eventually(() => line.errors.length === 1);
    expectDecodeError(line.errors[0]);
    expect(await redis.lrange(name, 0, -1)).toEqual([GARBAGE, '"good"']);
    expect(await quarantine()).toEqual([]);
  });

  test("does not reach the handler of a subscription, and is reported", async () => {
    const handled: unknown[] = [];
    queue.subscribe((payload) => handled.push(payload));
    await eventually(() => handled.length === 1);
    expect(handled).toEqual(["good"]);
    await eventually(() => line.errors.length === 1);
    expectDecodeError(line.errors[0]);
    expect(await quarantine()).toEqual([GARBAGE]);
  });

  test("can be put back from the quarantine, for readers with the right codec", async () => {
    await failureOf(queue.take());
    await redis.lmove(keys.quarantine, name, "LEFT", "LEFT");
    await line.close();
    const right = newLine().getBlockingQueue(name, { codec: "string" });
    expect(await right.take()).toBe(GARBAGE);
  });
});

describe("a ready message that neither the codec can read nor the quarantine can take", () => {
  const NOT_KEPT = /could not be put into the quarantine, so only `bytes` of this error holds it$/;

  beforeEach(async () => {
    await redis.set(keys.quarantine, "no LIST");
    await redis.rpush(name, GARBAGE, '"good"');
  });

  test("is in the error with which the call rejects, which says so", async () => {
    const queue = line.getBlockingQueue(name);
    const error = await failureOf(queue.take());
    expect(error).toBeInstanceOf(DecodeError);
    expect((error as DecodeError).message).toMatch(NOT_KEPT);
    expect((error as DecodeError).bytes.toString()).toBe(GARBAGE);
    expect(await queue.take()).toBe("good");
    await eventually(() => line.errors.length === 1);
    expect(line.errors).toMatchObject([{ code: "REDIS", reply: "WRONGTYPE" }]);
  });

  test("is in the reported error, which says so", async () => {
    expect(await line.getBlockingQueue(name).drain()).toEqual(["good"]);
    await eventually(() => line.errors.length === 2);
    const [refusal, error] = line.errors;
    expect(refusal).toMatchObject({ code: "REDIS", reply: "WRONGTYPE" });
    expect(error).toBeInstanceOf(DecodeError);
    expect((error as DecodeError).message).toMatch(NOT_KEPT);
    expect((error as DecodeError).bytes.toString()).toBe(GARBAGE);
  });
});

test("a codec that throws anything at all makes a DecodeError", async () => {
  const codec: Codec = {
    name: "odd",
    encode: () => Buffer.from("x"),
    decode: () => {
      throw GARBAGE;
    },
  };
  const odd = line.getBlockingQueue(name, { codec });
  await odd.put("x");
  const error = await failureOf(odd.take());
  expect(error).toBeInstanceOf(DecodeError);
  expect((error as Error).message).toContain('with codec "odd" (string)');
  expect((error as Error).message).not.toContain(GARBAGE);
});

describe("a delayed message that the codec cannot read", () => {
  beforeEach(async () => {
    const writer = newLine({ transfer: false, codec: "string" }).getDelayedQueue<string>(name);
    for (const text of ['"a"', GARBAGE, '"b"']) await writer.offer(text, MINUTE);
  });

  test("is skipped by calls that read all, and reported", async () => {
    expect(await delayedJson().insertionOrder.readAll()).toEqual(["a", "b"]);
    await eventually(() => line.errors.length === 1);
    expectDecodeError(line.errors[0]);
    expect((await collect(delayedJson().insertionOrder)).map(({ payload }) => payload)).toEqual([
      "a",
      "b",
    ]);
    await eventually(() => line.errors.length === 2);
    expect(await delayedJson().size()).toBe(3);
    expect(await quarantine()).toEqual([]);
  });

  test("makes peek reject, and stays", async () => {
    await delayedJson().insertionOrder.poll();
    expectDecodeError(await failureOf(delayedJson().insertionOrder.peek()));
    expect(await delayedJson().size()).toBe(2);
  });

  test("goes to the quarantine when it is polled", async () => {
    const queue = delayedJson();
    expect(await queue.insertionOrder.poll()).toBe("a");
    expectDecodeError(await failureOf(queue.insertionOrder.poll()));
    expect(await quarantine()).toEqual([GARBAGE]);
    expect(await queue.insertionOrder.poll()).toBe("b");
  });

  test("goes to the quarantine when many are polled, and the others are returned", async () => {
    expect(await delayedJson().insertionOrder.poll(10)).toEqual(["a", "b"]);
    expect(await quarantine()).toEqual([GARBAGE]);
    await eventually(() => line.errors.length === 1);
    expectDecodeError(line.errors[0]);
  });
});

describe("a delayed message whose bytes have no known layout", () => {
  test("goes to the quarantine when it is due, is reported, and the others flow", async () => {
    await redis.zadd(keys.timeouts, 1000, "garbage 1", 3000, "garbage 2");
    await redis.rpush(keys.order, "garbage 1", "garbage 2");
    const writer = newLine({ transfer: false, codec: "json" }).getDelayedQueue(name);
    await writer.offerAt("first", new Date(500));
    await writer.offerAt("second", new Date(2000));

    const queue = line.getBlockingQueue(name);
    expect([await queue.take(), await queue.take()]).toEqual(["first", "second"]);
    await eventually(() => line.errors.length > 0);
    expect(line.errors).toHaveLength(1);
    const [error] = line.errors;
    expect(error).toBeInstanceOf(QuarantineError);
    expect(error).toMatchObject({ code: "QUARANTINED", queue: name, count: 2 });
    expect(await unreadable()).toEqual(["garbage 1", "garbage 2"]);
    expect(await redis.exists(keys.timeouts, keys.order)).toBe(0);
  });

  test("is skipped by calls that read, and goes to the quarantine when it is polled", async () => {
    await redis.zadd(keys.timeouts, Date.now() + MINUTE, "garbage");
    await redis.rpush(keys.order, "garbage");
    const queue = line.getDelayedQueue(name, { transfer: false });
    await queue.offer("good", MINUTE);
    expect(await queue.insertionOrder.peek()).toBe("good");
    expect(await queue.insertionOrder.readAll()).toEqual(["good"]);
    expect(await queue.insertionOrder.contains("good")).toBe(true);
    expect(await queue.insertionOrder.poll()).toBe("good");
    expect(await unreadable()).toEqual(["garbage"]);
    expect(await queue.size()).toBe(0);
  });
});
