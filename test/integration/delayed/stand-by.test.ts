import type { Redis } from "ioredis";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { StandBy } from "../../../src/delayed/transfer/stand-by.ts";
import { headDeadline } from "../../../src/lua/queue/next-due.ts";
import type { Into } from "../../../src/lua/family.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { Queue } from "../../../src/queue/queue.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { watchCommands } from "../../helpers/monitor.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { newServer } from "../../helpers/server.ts";
import { serverTime } from "../../helpers/server-time.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { SELDOM, startTransferTask, transferReply } from "../../helpers/transfer-task.ts";

// Each task that stands by looks after each deadline, so a look has to be cheap.

let redis: Redis;
let name: string;
let keys: QueueKeys;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("stand-by");
  keys = queueKeys(name);
});

test("a look asks for the earliest deadline alone, until a message is overdue", async () => {
  const task = startTransferTask(name, SELDOM);
  await redis.set(keys.mover, "another");
  await eventually(async () => {
    // A deadline that has passed, and nothing is due: the other task has moved it.
    await redis.publish(keys.channel, "1000");
    return task.isStandingBy;
  });

  const watched = await watchCommands(keys.timeouts);
  await eventually(async () => {
    await redis.publish(keys.channel, "1000");
    return (await watched()).length >= 3;
  });
  const { name: look, sha } = headDeadline;
  for (const [, script = ""] of await watched()) {
    expect([sha, `-- delayline: ${look}`]).toContain(script.split("\\n")[0]);
  }

  const queue = newLine({ codec: "string", transfer: false }).getDelayedQueue<string>(name);
  await queue.offer("left by the other task", 10);
  await eventually(async () => expect(await redis.llen(name)).toBe(1));
  // Once it has the reply.
  await eventually(() => !task.isStandingBy);
});

/** A task that stands by, and its queue, whose messages go into the LIST or the stream. */
async function standingBy(into: Into, url = redisUrl()) {
  const server = newServer({ url });
  onTestFinished(() => server.close());
  const queue = new Queue(name, { elements: "addresses", into }, server);
  await queue.clock.ready(() => queue.time(server.connections.background));
  const standBy = new StandBy();
  standBy.onTransferred(transferReply({ isOutrun: true }), 900);
  expect(standBy.isOn).toBe(true);
  return { standBy, look: () => standBy.look(queue, false) };
}

test.for(["timeouts", "retries"] as const)("a look sees what is overdue in %s", async (zset) => {
  const { look } = await standingBy("stream");
  expect(await look()).toBe(Infinity);
  const now = Math.floor(await serverTime(redis));
  await redis.zadd(keys[zset], now + 60_000, "later");
  expect(await look()).toBe(now + 60_000);
  await redis.zadd(keys[zset], "-inf", "overdue");
  expect(await look()).toBe(undefined);
});

test.for(["list", "stream"] as const)("a look at a %s does not fetch the payload", async (into) => {
  await redis.zadd(keys.timeouts, 9e14, Buffer.alloc(1_000_000));
  await redis.zadd(keys.retries, 9e14, Buffer.alloc(1_000_000));
  const proxy = await startProxy(redisUrl());
  const { look } = await standingBy(into, proxy.url);
  let received = 0;
  proxy.onReply = ({ length }) => void (received += length);
  expect(await look()).toBe(9e14);
  expect(received).toBeGreaterThan(0);
  expect(received).toBeLessThan(1000);
});

test("a look sees the LIST of a reliable queue, and that a transfer has found it filled", async () => {
  const plain = await standingBy("list");
  const { standBy, look } = await standingBy("stream");
  await redis.rpush(keys.ready, "pushed");
  expect(await plain.look()).toBe(Infinity);
  expect(await look()).toBe(undefined);
  standBy.onTransferred(transferReply({ hasListed: true }), Infinity);
  await redis.del(keys.ready);
  expect(await look()).toBe(undefined);
  standBy.onTransferred(transferReply({}), Infinity);
  expect(await look()).toBe(Infinity);
});
