import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";
import { HOUR, newClock } from "../helpers/test-clock.ts";

/** A call that Redis refused for now is sent again as long as its caller waits for it, and never after that. */

test("a call that was aborted between two attempts is not sent again", async () => {
  const { url } = await startOwnServer();
  const redis = newRedis(url);
  const queue = newLineThatMayFail({ redis: url }).getBlockingQueue(uniqueName(), {
    transfer: false,
  });
  await queue.size();
  await redis.replicaof("127.0.0.1", "1");
  const controller = new AbortController();
  const putting = queue.put("x", { signal: controller.signal });
  // Redis has refused it.
  await eventually(async () => expect(await redis.info("errorstats")).toContain("READONLY"));
  controller.abort();
  await expect(putting).rejects.toThrow("aborted");
  await redis.replicaof("NO", "ONE");
  // No pause between two attempts is longer than half a second.
  await sleep(700);
  expect(await queue.size()).toBe(0);
});

test("a client that will never reconnect fails its calls at once", async () => {
  const options = {
    sentinels: [{ host: "127.0.0.1", port: 1 }],
    name: "nobody",
    sentinelRetryStrategy: () => null,
  };
  const queue = newLineThatMayFail({ redis: options, callTimeout: 40_000 }).getBlockingQueue(
    uniqueName(),
  );
  const startedAt = performance.now();
  await expect(queue.size()).rejects.toThrow("closed");
  // Otherwise the call would wait for its time, 40 s.
  expect(performance.now() - startedAt).toBeLessThan(20_000);
});

test("a call that Redis refuses for now is carried out as soon as Redis accepts it", async () => {
  const { url } = await startOwnServer();
  const redis = newRedis(url);
  const queue = newLine({ redis: url }).getBlockingQueue(uniqueName(), { transfer: false });
  await queue.size();
  await redis.replicaof("127.0.0.1", "1");
  const putting = queue.put("x");
  await eventually(async () => expect(await redis.info("errorstats")).toContain("READONLY"));
  await redis.replicaof("NO", "ONE");
  await putting;
  expect(await queue.size()).toBe(1);
});

test("so is an offer, however far a test has turned the clock", async () => {
  const clock = await newClock();
  const { url } = await startOwnServer();
  const redis = newRedis(url);
  const queue = newLine({ redis: url }).getDelayedQueue(uniqueName(), { transfer: false });
  await queue.size();
  await clock.advance(HOUR);
  await redis.replicaof("127.0.0.1", "1");
  const offering = queue.offer("x", HOUR);
  await eventually(async () => expect(await redis.info("errorstats")).toContain("READONLY"));
  await redis.replicaof("NO", "ONE");
  await offering;
  expect(await queue.size()).toBe(1);
});
