import { expect, onTestFinished, test } from "vitest";
import { Connections } from "../../src/connections.ts";
import type { DelaylineError } from "../../src/index.ts";
import { queueKeys } from "../../src/keys.ts";
import { ServerClock } from "../../src/server-clock.ts";
import { Subscriber } from "../../src/subscriber.ts";
import { TransferTask } from "../../src/transfer-task.ts";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";

const HOUR_IN_MICROS = 3_600_000_000;

test("the server's clock steps forward on an idle queue: the next message is late by 3 s at most", async () => {
  const name = uniqueName();
  const keys = queueKeys(name);
  const clock = new ServerClock();
  const errors: DelaylineError[] = [];
  const report = (error: DelaylineError) => errors.push(error);
  const connections = new Connections(redisUrl(), {
    onTime: (serverTime, sentAt) => clock.observe(serverTime, sentAt),
    report,
  });
  const subscriber = new Subscriber(connections, report);
  const task = new TransferTask(name, keys, false, { connections, subscriber, clock, report });
  onTestFinished(async () => {
    await task.close();
    subscriber.close();
    connections.close();
  });
  await eventually(() => clock.isSet);

  // As if the server's clock had been an hour behind until now.
  const local = ServerClock.local();
  clock.observe(clock.now() - HOUR_IN_MICROS, local);
  const redis = newRedis();
  const producer = newLine({ transfer: false });
  await producer.getDelayedQueue<string>(name).offer("after the step", 100);
  await eventually(async () => (await redis.llen(name)) === 1, { within: 3_100 });
  expect(errors).toEqual([]);
});
