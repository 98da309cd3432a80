import { expect, test } from "vitest";
import { redrive, removeDead } from "../../../src/lua/reliable/dead-letters.ts";
import { remove } from "../../../src/lua/delayed/remove.ts";
import { reschedule } from "../../../src/lua/delayed/reschedule.ts";
import { run } from "../../../src/lua/script.ts";
import type { RedisClient } from "../../../src/redis/client.ts";
import { bytes, message, newMoves, packRetry, retryName } from "../../helpers/moves.ts";
import type { Moves, QueueState } from "../../helpers/moves.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";

/*
 * Redis refuses a command in the middle of a script, because of its access rules or because memory is full. The script
 * must have changed nothing then.
 */

const a = message("a", 1000);
const dead: QueueState = {
  dead: [
    ["1-0", "a", a.address, "p", "a", "g", "g"],
    ["2-0", "a", a.address, "p", "a", "g", "h"],
  ],
};
const withRetry: QueueState = {
  groups: ["g"],
  retries: [[retryName(a, "g"), 5_000_000_000_000]],
  retrying: { [retryName(a, "g")]: packRetry(a, 1) },
};

type Move = (redis: RedisClient, keys: Moves["keys"]) => Promise<unknown>;

const page = { after: "", last: "", limit: 100, maxBytes: 1_000_000 };
const wanted = bytes(a.address);
const redriveAll: Move = (redis, keys) =>
  run(redis, redrive, keys, { channel: keys.channel, wanted: "", delay: 0, ...page });
const removeFromDead: Move = (redis, keys) => run(redis, removeDead, keys, { wanted, ...page });
const removeFromRetries: Move = (redis, keys) =>
  run(redis, remove, keys, {}, [{ id: wanted, key: "" }]);
const later = { id: wanted, key: "", delay: 5, deadline: "" };
const rescheduleRetry: Move = (redis, keys) =>
  run(redis, reschedule, keys, { channel: keys.channel, ...later });

test("changes nothing if a command is not permitted", async () => {
  const server = await startOwnServer();
  const admin = newRedis(server.url);
  const cases: [name: string, move: Move, before: QueueState, command: string][] = [
    ...["xdel", "zadd", "hset", "xrange", "zrange"].map((command): (typeof cases)[0] => [
      "redrive",
      redriveAll,
      dead,
      command,
    ]),
    ["remove-dead", removeFromDead, dead, "xdel"],
    ["remove", removeFromRetries, withRetry, "hdel"],
    ["remove", removeFromRetries, withRetry, "zrem"],
    ["reschedule", rescheduleRetry, withRetry, "zadd"],
  ];
  for (const [name, move, before, command] of cases) {
    const queue = await newMoves(server.url);
    await queue.seed(before);
    await admin.call(
      "ACL",
      "SETUSER",
      "limited",
      "reset",
      "on",
      ">secret",
      "~*",
      "&*",
      "+@all",
      `-${command}`,
    );
    const limited = newRedis(server.url, { username: "limited", password: "secret" });
    const what = `${name} without ${command}`;
    await expect(move(limited, queue.keys), what).rejects.toThrow(
      /permission|NOPERM|can't run this command/i,
    );
    limited.disconnect();
    expect(await queue.snapshot(), what).toEqual(before);
    await move(admin, queue.keys);
    expect(await queue.snapshot(), what).not.toEqual(before);
  }
});

test("when memory is full, letters are redriven and removed, and retries cancelled: that needs no more memory", async () => {
  const server = await startOwnServer();
  const queue = await newMoves(server.url);
  const { redis, keys } = queue;
  await queue.seed({ ...withRetry, dead: dead.dead ?? [] });
  await redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  await expect(redis.set("some", "thing")).rejects.toThrow("OOM");
  expect(await removeFromRetries(redis, keys)).toEqual([true]);
  expect(await redriveAll(redis, keys)).toMatchObject({ redriven: 2 });
  expect((await queue.snapshot()).retries?.length).toBe(2);
});
