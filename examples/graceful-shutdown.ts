/**
 * A deployment under load: new workers start, the old ones get SIGTERM while they are busy, and every job is done once.
 *
 *   npx tsx examples/graceful-shutdown.ts
 */
import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";

interface Job {
  readonly number: number;
}

const JOBS = 300;

const [generation, queue = `jobs-${randomUUID()}`] = process.argv.slice(2);
/** Where workers record finished jobs. */
const done = `${queue}:done`;

if (generation === undefined) await deploy();
else await work();

/** A worker: five jobs at a time, until SIGTERM. */
async function work(): Promise<void> {
  const url = process.env["REDIS_URL"] ?? "redis://localhost:6379";
  const redis = new Redis(url);
  const line = new Delayline({ redis: url });
  line.getBlockingQueue<Job>(queue).subscribe(
    async ({ number }) => {
      await sleep(20);
      await redis.rpush(done, JSON.stringify([number, generation]));
    },
    { concurrency: 5 },
  );

  const stopped = once(process, "SIGTERM");
  process.send?.("ready");
  await stopped;
  // Stops taking, and waits for running handlers. A job that arrives at this moment is returned to the queue. The
  // handlers use the other client, so it is closed last.
  await line.close();
  redis.disconnect();
}

/** Offers jobs, and replaces the workers while the jobs are done. */
async function deploy(): Promise<void> {
  await using server = await startRedis();
  await using line = new Delayline({ redis: server.url, transfer: false });
  const redis = new Redis(server.url);
  const start = (name: string) =>
    fork(new URL(import.meta.url), [name, queue], {
      env: { ...process.env, REDIS_URL: server.url },
    });

  const old = [start("old"), start("old")];
  const queued = line.getDelayedQueue<Job>(queue);
  const offer = (from: number, to: number) =>
    queued.offerMany(
      Array.from({ length: to - from }, (_, i) => ({
        payload: { number: from + i },
        delay: i * 10,
      })),
    );

  await offer(0, JOBS / 2);
  while ((await redis.llen(done)) < JOBS / 4) await sleep(10);
  const young = [start("young"), start("young")];
  await Promise.all(young.map((worker) => once(worker, "message")));
  await offer(JOBS / 2, JOBS);
  await stop(old);
  console.log(`the old workers ended after ${await redis.llen(done)} of ${JOBS} jobs`);
  while ((await redis.llen(done)) < JOBS) await sleep(10);
  await stop(young);

  const entries = await redis.lrange(done, 0, -1);
  const reports = entries.map((entry) => JSON.parse(entry) as [number, string]);
  const numbers = reports.map(([number]) => number).toSorted((a, b) => a - b);
  assert.deepEqual(numbers, [...Array(JOBS).keys()], "each job is done once");
  const share = (name: string) => reports.filter(([, by]) => by === name).length;
  assert.ok(share("old") > 0 && share("young") > 0, "both generations worked");
  console.log(`jobs done: ${share("old")} by the old workers, ${share("young")} by the new ones`);
  await redis.del(done);
  redis.disconnect();
}

async function stop(workers: readonly ChildProcess[]): Promise<void> {
  const exits = workers.map((worker) => once(worker, "exit"));
  for (const worker of workers) worker.kill("SIGTERM");
  for (const exit of exits) assert.deepEqual(await exit, [0, null], "a worker exits with code 0");
}
