import type { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import type { DelayedQueue } from "../../../src/index.ts";
import { headDeadline } from "../../../src/lua/queue/next-due.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { watchCommands } from "../../helpers/monitor.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { SELDOM, startTransferTask } from "../../helpers/transfer-task.ts";

// A task that is off duty, held, or refused for a reason that another part handles.

let redis: Redis;
let name: string;
let keys: QueueKeys;
let delayed: DelayedQueue<string>;
/** A queue with an ordinary task on the same connection. Whatever has not happened once it is done will not happen. */
let other: DelayedQueue<string>;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("duty");
  keys = queueKeys(name);
  const line = newLine({ codec: "string", transfer: false });
  delayed = line.getDelayedQueue<string>(name);
  other = line.getDelayedQueue<string>(uniqueName("other"));
});

const subscribers = async () => (await redis.pubsub("NUMSUB", keys.channel))[1];
const ready = () => redis.lrange(keys.ready, 0, -1);

/** A task that has looked once, and waits. */
async function startResting(options: Parameters<typeof startTransferTask>[2] = {}) {
  await delayed.offer("first", 0);
  const task = startTransferTask(name, SELDOM, options);
  await eventually(async () => (await redis.lpop(keys.ready)) === "first");
  return task;
}

/** Resolves when another task has moved a message that became due after everything that this test has offered. */
async function othersMoved(delay = 30): Promise<void> {
  startTransferTask(other.name, SELDOM);
  await other.offer("x", delay);
  await eventually(async () => (await redis.lpop(other.name)) === "x");
}

test("off duty a task looks when it is woken, and at no deadline; back on duty it looks at once", async () => {
  await delayed.offer("known before", 300);
  const task = await startResting();
  task.setDuty("off");
  expect(task.isStandingBy).toBe(true);
  const watched = await watchCommands(keys.mover);
  await othersMoved(300);
  expect(await watched()).toEqual([]);
  await delayed.offer("heard", 20);
  await redis.publish(keys.channel, "0");
  // It learns of the deadline.
  await eventually(async () => (await watched()).length === 1);
  await delayed.offer("due", 0);
  await redis.publish(keys.channel, "0");
  // The task leaves a message that is not overdue to others, and does not look again for it.
  await eventually(async () => (await watched()).length === 2);
  await othersMoved();
  expect(await watched()).toHaveLength(2);
  task.setDuty("alone");
  await eventually(async () => expect(await ready()).toHaveLength(3));
  expect(task.isStandingBy).toBe(false);
  await delayed.offer("later", 20);
  await eventually(async () => expect(await ready()).toHaveLength(4));
});

test("off duty a task sweeps when it is woken, and takes everything overdue", async () => {
  const task = await startResting();
  task.setDuty("off");
  const watched = await watchCommands(keys.mover);
  await delayed.offerMany(Array.from({ length: 250 }, () => ({ payload: "x", delay: 0 })));
  await eventually(async () => {
    await redis.publish(keys.channel, "0");
    return (await redis.llen(keys.ready)) === 250;
  });
  expect((await watched()).map((words) => words.at(-5))).not.toContain("0");
  expect(task.isDeaf).toBe(false);
});

test("a suspended task moves nothing, not even when it is woken; once resumed it looks at once", async () => {
  const task = await startResting();
  await delayed.offer("known before", 20);
  task.setSuspended(true);
  await delayed.offer("heard", 0);
  await redis.publish(keys.channel, "0");
  await othersMoved();
  expect(await ready()).toEqual([]);
  task.setSuspended(false);
  await eventually(async () => expect(await ready()).toHaveLength(2));
  await delayed.offer("later", 20);
  await eventually(async () => expect(await ready()).toHaveLength(3));
});

test("a task on stand-by that is suspended while it looks moves nothing", async () => {
  const proxy = await startProxy(redisUrl());
  const task = await startResting({ url: proxy.url });
  await redis.set(keys.mover, "another");
  await eventually(async () => {
    await redis.publish(keys.channel, "1000");
    return task.isStandingBy;
  });
  let looks = 0;
  proxy.onRequest = (chunk) => {
    if (!chunk.includes(headDeadline.sha)) return;
    looks++;
    task.setSuspended(true);
  };
  await delayed.offerAt("overdue at once", new Date("2020-01-01"));
  await eventually(() => looks > 0);
  await othersMoved();
  expect(await ready()).toEqual([]);
  task.setSuspended(false);
  await eventually(async () => expect(await ready()).toHaveLength(1));
});

test("a refusal for an old fact is not reported, and the task tries again", async () => {
  const learned: string[] = [];
  await redis.set(keys.partitions, "2:2:2:stable:1");
  startTransferTask(name, SELDOM, {
    link: { knownFact: () => "1:1:1:stable:1", refused: (held) => void learned.push(held) },
  });
  await eventually(() => learned.length >= 3);
  expect(new Set(learned)).toEqual(new Set(["2:2:2:stable:1"]));
  await redis.del(keys.partitions);
  await delayed.offer("x", 0);
  await eventually(async () => expect(await ready()).toEqual(["x"]));
});

test("a task that leaves unsubscribes, and moves nothing", async () => {
  const task = await startResting();
  expect(await subscribers()).toBe(1);
  await task.leave();
  await eventually(async () => (await subscribers()) === 0);
  await delayed.offer("x", 0);
  await othersMoved();
  expect(await ready()).toEqual([]);
});
