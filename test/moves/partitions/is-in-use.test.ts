import { expect, test } from "vitest";
import { isInUse } from "../../../src/lua/partitions/partition.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves, type Moves } from "../../helpers/moves.ts";

async function ask({ redis, keys }: Moves): Promise<{ left: boolean; used: boolean }> {
  return {
    left: await run(redis, isInUse, keys, { asked: "left" }),
    used: await run(redis, isInUse, keys, { asked: "used" }),
  };
}

test("an empty queue is not in use, nor is one with only remains", async () => {
  const queue = await newMoves();
  expect(await ask(queue)).toEqual({ left: false, used: false });
  await queue.redis.rpush(queue.keys.order, "stale");
  await queue.redis.hset(queue.keys.journal, "last", "1");
  expect(await ask(queue)).toEqual({ left: false, used: false });
});

test.each(["timeouts", "retries"] as const)("messages in %s are left", async (name) => {
  const queue = await newMoves();
  await queue.redis.zadd(queue.keys[name], 1, "a");
  expect(await ask(queue)).toEqual({ left: true, used: true });
});

test.each(["ready", "quarantine", "unreadable"] as const)(
  "payloads in %s are left",
  async (name) => {
    const queue = await newMoves();
    await queue.redis.rpush(queue.keys[name], "a");
    expect(await ask(queue)).toEqual({ left: true, used: true });
  },
);

test.each(["stream", "dead"] as const)("entries of %s are left", async (name) => {
  const queue = await newMoves();
  await queue.redis.xadd(queue.keys[name], "*", "a", "b");
  expect(await ask(queue)).toEqual({ left: true, used: true });
});

test("a batch in the journal is left", async () => {
  const queue = await newMoves();
  await queue.redis.hset(queue.keys.journal, "rows", "");
  expect(await ask(queue)).toEqual({ left: true, used: true });
});

test.each(["mover", "paused"] as const)("%s is only a sign of use", async (name) => {
  const queue = await newMoves();
  await queue.redis.set(queue.keys[name], "1");
  expect(await ask(queue)).toEqual({ left: false, used: true });
});

test("an empty stream is only a sign of use", async () => {
  const queue = await newMoves();
  await queue.redis.xgroup("CREATE", queue.keys.stream, "group", "0", "MKSTREAM");
  expect(await ask(queue)).toEqual({ left: false, used: true });
});

test("a key of another application with the bare name counts for nothing", async () => {
  const queue = await newMoves();
  await queue.redis.set(queue.keys.ready, "foreign");
  expect(await ask(queue)).toEqual({ left: false, used: false });
});

test("a key of the queue itself with a wrong type is an error", async () => {
  const { redis, keys } = await newMoves();
  await redis.set(keys.dead, "foreign");
  await expect(run(redis, isInUse, keys, { asked: "left" })).rejects.toThrow("WRONGTYPE");
});
