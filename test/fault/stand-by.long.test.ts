import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startChild } from "../helpers/child.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { bundle } from "../helpers/bundle.ts";
import { upTo, median } from "../helpers/numbers.ts";
import { serverTime } from "../helpers/server-time.ts";

/*
 * Several clients move the messages of one queue. One is active and the others stand by, so that the cost does not grow
 * with their number. When the active one is gone, another takes over.
 */

const mover = new URL("workers/mover.ts", import.meta.url);

/** Runs of scripts since the last reset. */
async function scriptRuns(redis: Redis): Promise<number> {
  const stats = await redis.info("commandstats");
  const calls = (command: string) =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  return calls("evalsha") + calls("eval");
}

/** Waits until `count` clients listen to the queue's channel. */
async function listeners(redis: Redis, name: string, count: number): Promise<void> {
  const channel = `redisson_delay_queue_channel:{${name}}`;
  await eventually(async () => Number((await redis.pubsub("NUMSUB", channel))[1]) === count, {
    what: `${count} clients listen`,
  });
}

test("of 5 clients one stays active, and the others hardly run scripts", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const name = uniqueName();
  const lines = upTo(5).map(() => newLine({ redis: server.url }));
  for (const line of lines) line.getDelayedQueue(name);
  await listeners(redis, name, 5);

  // 400 deadlines, 5 ms apart, all known beforehand: only their timers wake the tasks.
  const deadlines = 400;
  const queue = newLine({ redis: server.url, transfer: false }).getDelayedQueue<number>(name);
  const first = Math.ceil(await serverTime(redis)) + 500;
  await Promise.all(upTo(deadlines).map((n) => queue.offerAt(n, new Date(first + 5 * n))));
  await redis.config("RESETSTAT");
  await eventually(async () => (await redis.llen(name)) === deadlines, { within: 30_000 });

  // Without stand-by each of the five would run one per deadline. A busy machine, where timers are late, needs fewer
  // runs, since one script then moves several messages. So this is an upper bound.
  const runs = await scriptRuns(redis);
  expect(runs).toBeLessThan(deadlines * 1.5);
  // A script moves at most a hundred.
  expect(runs).toBeGreaterThanOrEqual(deadlines / 100);
});

test("the active process is killed: the next message is a little late, then all are punctual", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const queue = newLine({ transfer: false, codec: "json" }).getDelayedQueue<number>(name);
  const program = await bundle(mover);
  const start = async () => {
    const worker = startChild(program, { env: { REDIS: redisUrl(), QUEUE: name } });
    await worker.next();
    return worker;
  };
  const workers = [await start(), await start(), await start()];
  await listeners(redis, name, 3);

  /** Offers messages at intervals. Returns how late each was, in milliseconds. */
  const latenessOf = async (count: number, then?: (n: number) => Promise<void>) => {
    const lateness: number[] = [];
    const first = Math.ceil(await serverTime(redis)) + 100;
    const deadlines = upTo(count).map((n) => first + n * 100);
    for (const deadline of deadlines) await queue.offerAt(deadline, new Date(deadline));
    for (const n of upTo(count)) {
      const popped = await redis.blpop(name, 30);
      lateness.push((await serverTime(redis)) - Number(popped?.[1]));
      await then?.(n);
    }
    return lateness;
  };

  // Settled: all but one stand by.
  expect(Math.min(...(await latenessOf(15)))).toBeGreaterThanOrEqual(0);
  // Nobody can see which process is active, so they are killed one after the other, and the last is replaced.
  for (const victim of workers) {
    if (victim === workers.at(-1)) await start();
    const lateness = await latenessOf(8, async (n) => {
      if (n === 3) await victim.kill("SIGKILL");
    });
    expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
    // 100 to 200 ms after its deadline; the rest allows for a busy machine. A sweep is 24 s away or more.
    expect(Math.max(...lateness)).toBeLessThan(10_000);
    // A client on stand-by moves messages at least 100 ms late.
    await eventually(async () => median(await latenessOf(8)) < 80, { within: 40_000 });
  }
}, 180_000);

test("a cancelled head does not make a lone client stand by", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const line = newLine({ codec: "json" });
  const queue = line.getDelayedQueue<string>(name);
  await listeners(redis, name, 1);
  // It has moved something, so it is the one that moved last.
  await queue.offer("first", 0);
  expect(await redis.blpop(name, 20)).not.toBeNull();

  const lateness: number[] = [];
  for (const n of upTo(10)) {
    await queue.offer(`cancelled ${n}`, 60);
    expect(await queue.insertionOrder.poll()).toBe(`cancelled ${n}`);
    // The task wakes up for a message that is no longer there.
    await sleep(80);
    const { deadline } = await queue.offer(`message ${n}`, 40);
    expect(await redis.blpop(name, 20)).not.toBeNull();
    lateness.push((await serverTime(redis)) - deadline);
  }
  // On stand-by it would look 100 ms after a deadline at the earliest, each time. Most may be late because the machine
  // is busy.
  expect(lateness.filter((late) => late < 90).length).toBeGreaterThanOrEqual(3);
  expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
});

test("clients on stand-by take over from an active task that cannot reach Redis", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const name = uniqueName();
  const queue = newLine({ redis: server.url, transfer: false }).getDelayedQueue<number>(name);
  const lines = upTo(3).map(() => newLineThatMayFail({ redis: server.url }));
  for (const line of lines) line.getDelayedQueue(name);
  await listeners(redis, name, 3);

  const received: number[] = [];
  for (const n of upTo(30)) {
    const { deadline } = await queue.offer(n, 20);
    // The script connections of all three are killed now and then, and the first to return moves the messages.
    if (n % 5 === 4) {
      const list = String(await redis.client("LIST")).split("\n");
      const background = list.find((one) => one.includes("name=delayline:background "));
      await redis.client("KILL", "ID", /id=(\d+)/.exec(background ?? "")?.[1] ?? "0");
    }
    const popped = await redis.blpopBuffer(name, 20);
    expect(await serverTime(redis)).toBeGreaterThanOrEqual(deadline);
    received.push(popped?.[1]?.[0] ?? -1);
  }
  // Small integers are one byte of MessagePack.
  expect(received).toEqual(upTo(30));
});
