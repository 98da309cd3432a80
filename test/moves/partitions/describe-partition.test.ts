import { expect, test } from "vitest";
import { describePartition } from "../../../src/lua/partitions/partition.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves } from "../../helpers/moves.ts";

test("an empty partition", async () => {
  const { redis, keys } = await newMoves();
  expect(await run(redis, describePartition, keys, {})).toEqual({
    delayed: 0,
    ready: 0,
    inFlight: 0,
    holder: undefined,
  });
});

test("counts both kinds of delayed messages and the LIST, and names the holder", async () => {
  const { redis, keys } = await newMoves();
  await redis.zadd(keys.timeouts, 1, "a", 2, "b");
  await redis.zadd(keys.retries, 1, "c");
  await redis.rpush(keys.ready, "d", "e");
  await redis.hset(keys.holder, "holder", "process");
  expect(await run(redis, describePartition, keys, {})).toEqual({
    delayed: 3,
    ready: 2,
    inFlight: 0,
    holder: "process",
  });
});

test("an entry is ready once for each group, except where it is in flight", async () => {
  const { redis, keys } = await newMoves();
  const counts = async () => {
    const { ready, inFlight } = await run(redis, describePartition, keys, {});
    return { ready, inFlight };
  };
  for (const payload of ["a", "b", "c"]) await redis.xadd(keys.stream, "*", "p", payload);
  expect(await counts()).toEqual({ ready: 3, inFlight: 0 });
  for (const group of ["g", "h"]) await redis.xgroup("CREATE", keys.stream, group, "0");
  expect(await counts()).toEqual({ ready: 6, inFlight: 0 });
  await redis.xreadgroup("GROUP", "g", "one", "COUNT", 2, "STREAMS", keys.stream, ">");
  await redis.xreadgroup("GROUP", "h", "one", "COUNT", 1, "STREAMS", keys.stream, ">");
  expect(await counts()).toEqual({ ready: 3, inFlight: 3 });
});
