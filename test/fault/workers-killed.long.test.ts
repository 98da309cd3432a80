import { expect, test } from "vitest";
import { newLine } from "../helpers/delayline.ts";
import { startChild } from "../helpers/child.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { expectEachOnce } from "../helpers/ledger.ts";
import { bundle } from "../helpers/bundle.ts";
import { upTo } from "../helpers/numbers.ts";

const mover = new URL("workers/mover.ts", import.meta.url);

test("of two processes that move messages, one is killed again and again, and each message arrives once", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const producer = newLine({ transfer: false, codec: "string" });
  const program = await bundle(mover);
  const start = () => startChild(program, { env: { REDIS: redisUrl(), QUEUE: name } });

  const workers = [start(), start()];
  await Promise.all(workers.map((worker) => worker.next()));
  const sent: string[] = [];
  for (const kill of upTo(6)) {
    // Enough work for a second.
    const more = upTo(500).map((i) => `message ${sent.length + i}`);
    sent.push(...more);
    const before = await redis.llen(name);
    await producer
      .getDelayedQueue<string>(name)
      .offerMany(more.map((payload, i) => ({ payload, delay: 100 + 2 * i })));
    // In the middle of its work: wait for a message that moves now.
    await eventually(async () => (await redis.llen(name)) > before);
    await workers[kill % 2]?.kill("SIGKILL");
    const worker = start();
    workers[kill % 2] = worker;
    await worker.next();
  }

  await eventually(async () => (await redis.llen(name)) >= sent.length, { within: 40_000 });
  expectEachOnce(sent, await redis.lrange(name, 0, -1));
  expect(await redis.zcard(`redisson_delay_queue_timeout:{${name}}`)).toBe(0);
}, 180_000);

test("messages that fell due while no process ran move as soon as the first is back", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const producer = newLine({ codec: "string" });
  const sent = upTo(1000).map((i) => `message ${i}`);
  const results = await producer
    .getDelayedQueue<string>(name, { transfer: false })
    .offerMany(sent.map((payload, i) => ({ payload, delay: 100 + i / 4 })));
  await producer.close();

  const last = Math.max(...results.map(({ deadline }) => deadline));
  await eventually(async () => Number((await redis.time())[0]) * 1000 > last);
  expect(await redis.llen(name)).toBe(0);

  const line = newLine({ codec: "string" });
  const startedAt = performance.now();
  const queue = line.getBlockingQueue<string>(name);
  const received: string[] = [];
  while (received.length < 1000) received.push(...(await queue.takeMany({ limit: 100 })));
  expect(received).toEqual(sent);
  // Not at a sweep, which would be 24 s away or more.
  expect(performance.now() - startedAt).toBeLessThan(15_000);
});

test("messages that fell due long ago leave in the order of their deadlines", async () => {
  const name = uniqueName();
  const producer = newLine({ transfer: false, codec: "string" });
  const delayed = producer.getDelayedQueue<string>(name);
  const days = [3, 1, 2];
  for (const day of days) {
    await delayed.offerAt(`${day} days ago`, new Date(Date.now() - day * 86_400_000));
  }
  const queue = newLine({ codec: "string" }).getBlockingQueue<string>(name);
  // They are all due at once, so they leave together.
  const taken = [await queue.take(), await queue.take(), await queue.take()];
  expect(taken).toEqual(["3 days ago", "2 days ago", "1 days ago"]);
});
