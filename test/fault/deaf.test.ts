import { expect, test } from "vitest";
import { queueKeys } from "../../src/queue/keys.ts";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { Roles } from "../helpers/roles.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";
import { OFTEN, startTransferTask } from "../helpers/transfer-task.ts";

/*
 * Wake-ups that never arrive although the connection works: a proxy filters them out, or the nodes of a Cluster do not
 * reach each other. Only the sweep finds the messages then.
 */

const HOUR = 3_600_000;

test("wake-ups are lost for good: the first message waits for a sweep, later ones only briefly, until a wake-up is heard", async () => {
  const name = uniqueName("deaf");
  const redis = newRedis();
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  let isFiltering = true;
  proxy.onReply = (chunk, connection) => {
    const isWakeUp =
      roles.nameOf(connection) === "delayline:subscriber" && chunk.includes("\r\nmessage\r\n");
    return isFiltering && isWakeUp ? "drop" : "forward";
  };
  const queue = newLine({ transfer: false, codec: "string" }).getDelayedQueue<string>(name);
  const isReady = async (payload: string) => (await redis.lrange(name, 0, -1)).includes(payload);

  // After its first sweep this task would not sweep again for an hour.
  const sweeps = { ordinary: 1500, deaf: 50 };
  await queue.offer("before the start", 0);
  const task = startTransferTask(name, sweeps, { url: proxy.url });
  await eventually(() => isReady("before the start"));
  // The task found that message on subscribing. No wake-up could have announced it.
  expect(task.isDeaf).toBe(false);

  await queue.offer("first", 0);
  sweeps.ordinary = HOUR;
  await eventually(() => isReady("first"));
  await eventually(() => task.isDeaf);
  for (const payload of ["second", "third", "fourth"]) {
    await queue.offer(payload, 20);
    await eventually(() => isReady(payload));
  }
  expect(task.isDeaf).toBe(true);

  // A message that the task knew of says nothing about wake-ups. A wake-up that arrives does.
  isFiltering = false;
  await queue.offer("heard", HOUR);
  await queue.offer("and moved", 20);
  await eventually(() => !task.isDeaf);
  await eventually(() => isReady("and moved"));
  expect(task.isDeaf).toBe(false);
});

test("a task that hears its wake-ups does not stay deaf for long, however often it sweeps", async () => {
  const name = uniqueName("hearing");
  const redis = newRedis();
  const queue = newLine({ transfer: false, codec: "string" }).getDelayedQueue<string>(name);
  const task = startTransferTask(name, { ...OFTEN, ordinary: 5 });
  const { channel } = queueKeys(name);
  await eventually(async () => Number((await redis.pubsub("NUMSUB", channel))[1]) === 1);
  for (let i = 0; i < 50; i++) {
    await queue.offer("at once", 0);
    await queue.offer("soon", 10);
    await eventually(async () => (await redis.llen(name)) === 2 * i + 2);
    // A sweep may have found a message before its wake-up was heard.
    await eventually(() => !task.isDeaf);
  }
});
