import { expect, test } from "vitest";
import { callsOf } from "../../helpers/calls.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/** What a message needs that is offered, moved, read and acknowledged alone: 17 commands. */
const NEEDED: Readonly<Record<string, number>> = {
  evalsha: 3,
  // Offer: the deadline, the insertion order, the message, and whether it is the first that is due.
  time: 2,
  rpush: 1,
  zadd: 1,
  zrank: 1,
  // Move: what is due, of messages and of retries; into the stream.
  zrange: 2,
  xadd: 1,
  zremrangebyrank: 1,
  xreadgroup: 1,
  // Acknowledge: whether it is in flight, and whether another group needs it.
  xpending: 1,
  "xinfo|groups": 1,
  xack: 1,
  xdel: 1,
};

test("a message that comes alone costs 17 commands from its offer to its acknowledgement", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const orders = newLine({ redis: server.url }).getReliableQueue<number>(uniqueName("cost"));
  let handledCount = 0;
  orders.subscribe(() => void handledCount++, { concurrency: 1 });
  await orders.offer(0, 0);
  await eventually(() => handledCount === 1);
  await eventually(async () => (await callsOf(redis))["xdel"] === 1);
  await redis.config("RESETSTAT");

  const count = 40;
  for (let i = 0; i < count; i++) await orders.offer(i, 300 + i * 20);
  await eventually(() => handledCount === 1 + count);
  const { info: _info, "config|resetstat": _reset, ...calls } = await callsOf(redis);
  const total = Object.values(calls).reduce((sum, number) => sum + number, 0);
  // The rest is for claims and heartbeats. On a busy machine several messages may share a script.
  expect(total / count).toBeLessThan(17.9);
  expect(total / count).toBeGreaterThan(5);
  for (const [name, needed] of Object.entries(NEEDED)) {
    expect.soft((calls[name] ?? 0) / count, name).toBeLessThan(needed + 0.3);
  }
});
