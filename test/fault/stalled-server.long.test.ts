import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, test } from "vitest";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";

it("a stall of Redis that outlasts every time limit loses no message", async () => {
  const server = await startOwnServer();
  const line = newLineThatMayFail({ redis: server.url });
  const name = uniqueName();
  const delayed = line.getDelayedQueue<number>(name);
  const ready = line.getBlockingQueue<number>(name);
  await delayed.offerMany(Array.from({ length: 300 }, (_, i) => ({ payload: i, delay: i * 3 })));

  // A pop, a blocking call and a transfer are outstanding, or are sent during the stall.
  const received: number[] = [];
  const consuming = (async () => {
    while (received.length < 300)
      received.push(...(await ready.takeMany({ limit: 10, timeout: 500 })));
  })();
  const draining = (async () => {
    while (received.length < 300) {
      received.push(...(await ready.drain(5)));
      await sleep(1);
    }
  })();
  await eventually(() => received.length > 20);
  server.pause();
  await sleep(4500);
  server.resume();
  await Promise.all([consuming, draining.catch(() => {})]);

  expect(received.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, i) => i));
}, 60_000);

test.each(["poll", "takeMany", "pollFromAny"] as const)(
  "the first %s of a queue ends soon after its time, though Redis replies to nobody",
  async (method) => {
    const server = await startOwnServer();
    const name = uniqueName();
    const queue = newLine({ redis: server.url }).getBlockingQueue(name, { transfer: false });
    const waits = {
      poll: () => queue.poll(100),
      takeMany: () => queue.takeMany({ limit: 10, timeout: 100 }),
      pollFromAny: () => queue.pollFromAny([uniqueName()], 100),
    };
    server.pause();
    const startedAt = performance.now();
    await expect(waits[method]()).rejects.toMatchObject({ code: "REDIS" });
    // Soon: a second on a quiet machine. Otherwise it would not end while Redis stands still.
    expect(performance.now() - startedAt).toBeLessThan(10_000);

    // It leaves no request behind that would swallow a message.
    server.resume();
    await newRedis(server.url).rpush(name, Buffer.from([0xa1, 0x61]));
    expect(await queue.poll(10_000)).toBe("a");
  },
);
