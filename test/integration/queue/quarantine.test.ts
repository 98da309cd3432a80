import { beforeEach, describe, expect, test } from "vitest";
import { DecodeError, type Delayline } from "../../../src/index.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

let name: string;
let keys: QueueKeys;
let redis: ReturnType<typeof newRedis>;

beforeEach(() => {
  name = uniqueName("quarantine");
  keys = queueKeys(name);
  redis = newRedis();
});

const texts = async (quarantine: AsyncIterable<Buffer>) =>
  (await collect(quarantine)).map((bytes) => bytes.toString());

describe.each([
  { side: "delayed", open: (line: Delayline) => line.getDelayedQueue(name) },
  { side: "ready", open: (line: Delayline) => line.getBlockingQueue(name) },
])("by a handle of the $side side", ({ open }) => {
  test("returns its size and its bytes without removing them: first payloads, then whole messages", async () => {
    const { quarantine } = open(newLine({ transfer: false }));
    expect(await quarantine.size()).toBe(0);
    expect(await collect(quarantine)).toEqual([]);
    const payloads = Array.from({ length: 250 }, (_, i) => `payload ${i}`);
    await redis.rpush(keys.quarantine, ...payloads);
    await redis.rpush(keys.unreadable, "message 1", "message 2");
    expect(await quarantine.size()).toBe(252);
    expect(await texts(quarantine)).toEqual([...payloads, "message 1", "message 2"]);
    expect(await quarantine.size()).toBe(252);
    expect(await quarantine.clear()).toBe(252);
    expect(await quarantine.size()).toBe(0);
    expect(await quarantine.clear()).toBe(0);
  });

  test("requeue moves payloads, oldest first, and messages of an unknown layout stay", async () => {
    const { quarantine } = open(newLine({ transfer: false }));
    const payloads = Array.from({ length: 250 }, (_, i) => `"payload ${i}"`);
    await redis.rpush(keys.quarantine, ...payloads);
    await redis.rpush(keys.unreadable, "garbage");
    await redis.rpush(name, '"ready"');
    expect(await quarantine.requeue(0)).toBe(0);
    expect(await quarantine.requeue(120)).toBe(120);
    expect(await redis.lrange(name, 0, -1)).toEqual(['"ready"', ...payloads.slice(0, 120)]);
    expect(await quarantine.requeue()).toBe(130);
    expect(await redis.lrange(name, 0, -1)).toEqual(['"ready"', ...payloads]);
    expect(await quarantine.requeue()).toBe(0);
    expect(await texts(quarantine)).toEqual(["garbage"]);
  });
});

test("payloads that are still unreadable come back, and do not keep requeue busy", async () => {
  await redis.rpush(keys.quarantine, "{ no json", '"fine"', "[ neither");
  const line = newLineThatMayFail({ codec: "json" });
  const queue = line.getBlockingQueue<string>(name);
  const received: string[] = [];
  queue.subscribe((payload) => received.push(payload));
  expect(await queue.quarantine.requeue()).toBe(3);
  await eventually(() => received.length === 1 && line.errors.length === 2);
  expect(received).toEqual(["fine"]);
  expect(line.errors.every((error) => error instanceof DecodeError)).toBe(true);
  await eventually(async () => (await queue.quarantine.size()) === 2);
  expect(await texts(queue.quarantine)).toEqual(["{ no json", "[ neither"]);
});

test("large payloads are read and moved a few at a time", async () => {
  const { quarantine } = newLine({ transfer: false }).getBlockingQueue(name);
  const large = "x".repeat(100_000);
  for (let i = 0; i < 25; i++) await redis.rpush(keys.quarantine, large);
  expect(await texts(quarantine)).toEqual(Array(25).fill(large));
  expect(await quarantine.requeue()).toBe(25);
  expect(await redis.llen(name)).toBe(25);
});

test("an illegal limit is refused, and nothing is moved", async () => {
  await redis.rpush(keys.quarantine, "a");
  const { quarantine } = newLine({ transfer: false }).getDelayedQueue(name);
  for (const limit of [-1, 1.5, NaN, "3", null, {}]) {
    await expect(quarantine.requeue(limit as number)).rejects.toThrow(
      /limit must be a whole number/,
    );
  }
  expect(await redis.llen(keys.quarantine)).toBe(1);
});
