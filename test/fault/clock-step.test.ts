import { expect, test } from "vitest";
import { queueTime } from "../../src/time/runtime.ts";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";
import { newServer } from "../helpers/server.ts";
import { SELDOM, startTransferTask } from "../helpers/transfer-task.ts";

const HOUR = 3_600_000;

test("the server's clock steps forward on an idle queue, and the next message is at most 3 s late", async () => {
  const name = uniqueName();
  const server = newServer();
  const { clock } = server;
  const redis = newRedis();
  // The task checks the clock every 3 s. Without that check it would sleep for the hour, or until a sweep in a minute.
  startTransferTask(name, { ordinary: 60_000, deaf: 60_000 }, { server });
  await eventually(() => clock.isSet);

  // As if the server's clock had been an hour slow until now.
  clock.observe(clock.now() - HOUR, queueTime.now());
  expect(clock.remaining(Date.now())).toBeGreaterThan(3_500_000);
  await newLine({ transfer: false }).getDelayedQueue<string>(name).offer("after the step", 100);
  await eventually(async () => (await redis.llen(name)) === 1);
});

test("the server's clock steps forward, the head is cancelled, and a message behind it is not late", async () => {
  const name = uniqueName();
  const server = newServer();
  const { clock } = server;
  const redis = newRedis();
  startTransferTask(name, SELDOM, { server });
  // By then the new connections have been asked for their first sign of life. The next one is a minute away.
  await eventually(() => clock.isSet && clock.age > 1200);
  const queue = newLine({ transfer: false }).getDelayedQueue<string>(name);
  const head = await queue.offer("the head", 2000);
  // The task has heard of it, and asks for the time.
  await eventually(() => clock.age < 1000);

  // The step happens while nothing does, so the task believes that the head is an hour away. It takes an estimate for old
  // after a second.
  clock.observe(clock.now() - HOUR, queueTime.now());
  await eventually(() => clock.age > 1000);
  await queue.cancel(head.id);
  await queue.offer("behind it", 1500);
  await eventually(async () => (await redis.llen(name)) === 1, { within: 10_000 });
});
