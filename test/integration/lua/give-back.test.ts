import type { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { giveBack } from "../../../src/lua/ready/ready.ts";
import { run } from "../../../src/lua/script.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

// One move, and the state of Redis before and after it.

const DAY = 86_400_000;

let redis: Redis;
let keys: QueueKeys;

beforeEach(() => {
  redis = newRedis();
  keys = queueKeys(uniqueName("give-back"));
});

const move = (receipt: string, payloads: string[], client = redis) =>
  run(
    client,
    giveBack,
    { ready: keys.ready, receipts: keys.receipts },
    { receipt },
    payloads.map((payload) => ({ payload })),
  );

const ready = () => redis.lrange(keys.ready, 0, -1);
const receipts = () => redis.zrange(keys.receipts, "0", "-1");

test("puts payloads in front of the others, in order, and leaves a receipt", async () => {
  await redis.rpush(keys.ready, "c", "d");
  expect(await move("1", ["a", "b"])).toBe(2);
  expect(await ready()).toEqual(["a", "b", "c", "d"]);
  expect(await receipts()).toEqual(["1"]);
});

test("takes as many payloads as one give-back holds", async () => {
  const payloads = Array.from({ length: 500 }, (_, i) => `${i}`);
  expect(await move("1", payloads)).toBe(500);
  expect(await ready()).toEqual(payloads);
});

test("does nothing if its receipt is there", async () => {
  await move("1", ["a"]);
  await redis.del(keys.ready);
  expect(await move("1", ["a"])).toBe(0);
  expect(await ready()).toEqual([]);
  expect(await move("2", ["b"])).toBe(1);
  expect(await receipts()).toEqual(["1", "2"]);
});

test("drops receipts that are older than a day; the key expires a day after the last", async () => {
  const [seconds] = await redis.time();
  const now = Number(seconds) * 1000;
  await redis.zadd(keys.receipts, now - DAY - 1000, "old", now - DAY + 60_000, "not yet");
  await move("new", ["a"]);
  expect(await receipts()).toEqual(["not yet", "new"]);
  const left = await redis.pttl(keys.receipts);
  expect(left).toBeGreaterThan(DAY - 60_000);
  expect(left).toBeLessThanOrEqual(DAY);
});

test("drops old receipts in parts, however many there are", async () => {
  for (let i = 0; i < 25; i++) {
    await redis.zadd(
      keys.receipts,
      ...Array.from({ length: 10 }, (_, j) => [`${i}`, `${i}-${j}`]).flat(),
    );
  }
  await move("new", ["a"]);
  expect(await redis.zcard(keys.receipts)).toBe(151);
});

test("a refused push leaves no receipt", async () => {
  await redis.set(keys.ready, "no LIST");
  await expect(move("1", ["a"])).rejects.toThrow("WRONGTYPE");
  expect(await receipts()).toEqual([]);
  await redis.del(keys.ready);
  expect(await move("1", ["a"])).toBe(1);
});

test("receipts of another type: nothing is pushed", async () => {
  await redis.set(keys.receipts, "no ZSET");
  await expect(move("1", ["a"])).rejects.toThrow("WRONGTYPE");
  expect(await ready()).toEqual([]);
});

test("works however full the memory is", async () => {
  const server = await startOwnServer();
  redis = newRedis(server.url);
  await redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  await expect(redis.lpush(keys.ready, "x")).rejects.toThrow("OOM");
  expect(await move("1", ["a"])).toBe(1);
  expect(await move("2", ["b"])).toBe(1);
  expect(await ready()).toEqual(["b", "a"]);
});

test.each(["zscore", "time", "zrangebyscore", "zrem", "zadd", "expire", "lpush"])(
  "if %s is not permitted, nothing changes, and it works once it is",
  async (command) => {
    const server = await startOwnServer();
    redis = newRedis(server.url);
    const rules = ["on", ">secret", "~*", "&*", "+@all"];
    await redis.acl("SETUSER", "taker", ...rules, `-${command}`);
    const user = newRedis(server.url, { username: "taker", password: "secret" });
    await expect(move("1", ["a"], user)).rejects.toThrow(/permission|can't run/);
    expect(await redis.dbsize()).toBe(0);
    await redis.acl("SETUSER", "taker", ...rules);
    expect(await move("1", ["a"], user)).toBe(1);
    expect(await ready()).toEqual(["a"]);
  },
);
