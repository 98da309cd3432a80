import { expect, test } from "vitest";
import { newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { uniqueName } from "../helpers/redis.ts";
import { startSentinelPair } from "../helpers/sentinel.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";

/*
 * ioredis gives a client up for good when a failover is announced while it asks a Sentinel for the master: the
 * connection to the old master is gone, but those that listen to the Sentinels are still there.
 */

test("a failover announced while the Sentinel is being asked ends no client and no call", async () => {
  const name = "delayline";
  const { master, sentinelPort, handOver } = await startSentinelPair(name);
  const sentinel = await startProxy(`redis://127.0.0.1:${sentinelPort}`);
  const line = newLineThatMayFail({
    redis: { sentinels: [{ host: "127.0.0.1", port: sentinel.port }], name },
    callTimeout: 40_000,
  });
  const queue = line.getDelayedQueue<string>(uniqueName());
  await queue.offer("kept", 60_000);
  await handOver();

  // New questions get no answer from now on, but subscribers still hear.
  const listening = sentinel.acceptedCount;
  let isSilent = true;
  let heard = 0;
  sentinel.onReply = (chunk, { id }) => {
    if (chunk.includes("+switch-master")) heard++;
    return isSilent && id > listening ? "drop" : "forward";
  };
  master.pause();
  const underWay = queue.size();
  await new Promise(setImmediate);
  await master.kill();
  // Errors of awaited calls, and of background work.
  await eventually(() => heard >= 2, { within: 30_000 });
  isSilent = false;

  expect(await underWay).toBe(1);
  expect(await queue.size()).toBe(1);
  expect(await queue.insertionOrder.poll()).toBe("kept");
  await eventually(() => line.recoveries.length === line.errors.length);
  expect(line.errors.map(({ code }) => code)).toEqual(["REDIS"]);
}, 120_000);
