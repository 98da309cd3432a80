import { expect, test } from "vitest";
import { removeRemains } from "../../../src/lua/partitions/partition.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves } from "../../helpers/moves.ts";

test("removes meaningless keys from an empty partition, and keeps those that tell late processes", async () => {
  const { redis, keys } = await newMoves();
  await redis.rpush(keys.order, "nothing");
  await redis.set(keys.paused, "1");
  await redis.set(keys.partitions, "fact");
  await redis.hset(keys.journal, "last", "1");
  await redis.hset(keys.arrivals, "0", "1");
  await redis.xgroup("CREATE", keys.stream, "group", "0", "MKSTREAM");
  expect(await run(redis, removeRemains, keys, {})).toBe(true);
  const kept = [keys.partitions, keys.journal, keys.arrivals];
  expect(await redis.exists(...kept)).toBe(3);
  expect(await redis.exists(keys.order, keys.paused, keys.stream)).toBe(0);
});

test("of a flow with lanes nothing is left", async () => {
  const { redis, keys } = await newMoves();
  await redis.hset(keys.flow, "kind", "lanes");
  const zsets = [keys.turns, keys.lanes, keys.resting, keys.lanePaces, keys.hands];
  for (const zset of zsets) await redis.zadd(zset, 1, "lane");
  expect(await run(redis, removeRemains, keys, {})).toBe(true);
  expect(await redis.exists(keys.flow, ...zsets)).toBe(0);
});

test("entries that every group has finished go with an empty partition", async () => {
  const { redis, keys } = await newMoves();
  for (const group of ["slow", "fast"]) {
    await redis.xgroup("CREATE", keys.stream, group, "0", "MKSTREAM");
  }
  // What acknowledging leaves if Redis refuses XDEL.
  const id = String(await redis.xadd(keys.stream, "*", "a", "b"));
  const finish = async (group: string) => {
    await redis.xreadgroup("GROUP", group, "consumer", "STREAMS", keys.stream, ">");
    expect(await run(redis, removeRemains, keys, {})).toBe(false);
    await redis.xack(keys.stream, group, id);
  };
  await finish("fast");
  expect(await run(redis, removeRemains, keys, {})).toBe(false);
  await finish("slow");
  expect(await run(redis, removeRemains, keys, {})).toBe(true);
  expect(await redis.exists(keys.stream)).toBe(0);
});

test("a partition that holds anything keeps all of it", async () => {
  const holdings = {
    timeouts: (key: string) => ["ZADD", key, "1", "a"],
    room: (key: string) => ["HSET", key, "a", "b"],
    ready: (key: string) => ["RPUSH", key, "a"],
    quarantine: (key: string) => ["RPUSH", key, "a"],
    unreadable: (key: string) => ["RPUSH", key, "a"],
    retries: (key: string) => ["ZADD", key, "1", "a"],
    stream: (key: string) => ["XADD", key, "*", "a", "b"],
    dead: (key: string) => ["XADD", key, "*", "a", "b"],
    journal: (key: string) => ["HSET", key, "rows", ""],
  } as const;
  for (const [name, holding] of Object.entries(holdings)) {
    const { redis, keys } = await newMoves();
    await redis.rpush(keys.order, "element");
    const [command, ...args] = holding(keys[name as keyof typeof holdings]);
    await redis.call(command as string, ...args);
    expect([name, await run(redis, removeRemains, keys, {})]).toEqual([name, false]);
    expect(await redis.llen(keys.order)).toBe(1);
  }
});
