/**
 * Moves delayed jobs and job schedulers from BullMQ into Delayline. Each keeps its deadline.
 *
 *   npx tsx examples/from-bullmq.ts
 */
import assert from "node:assert/strict";
import { Queue } from "bullmq";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";

interface Order {
  readonly id: number;
}

const MINUTE = 60_000;

await using server = await startRedis();
const redis = new Redis(server.url, { maxRetriesPerRequest: null });
const queue = new Queue<Order>(`orders-${process.pid}`, { connection: redis });
await using line = new Delayline({ redis: server.url });
const orders = line.getDelayedQueue<Order>(`moved-orders-${process.pid}`, { transfer: false });

// Jobs left by an application. The delay of one was changed later.
const startedAt = Date.now();
await queue.add("unpaid", { id: 1 }, { delay: 10 * MINUTE });
const changed = await queue.add("unpaid", { id: 2 }, { delay: 20 * MINUTE, jobId: "order-2" });
await changed.changeDelay(5 * MINUTE);
const inAnHour = { every: 60 * MINUTE, startDate: startedAt + 60 * MINUTE };
await queue.upsertJobScheduler("report", { ...inAnHour, limit: 5 }, { data: { id: 3 } });
// Two that have no place here: a key has at most 200 bytes, and these numbers of weekdays have two meanings.
await queue.add("unpaid", { id: 4 }, { delay: 10 * MINUTE, jobId: "x".repeat(300) });
await queue.upsertJobScheduler("odd", { pattern: "0 0 9 ? * 2-6" }, { data: { id: 5 } });

/** What could not be moved, and why. It stays in BullMQ. */
const left = new Map<string, unknown>();

/** Moves all delayed jobs. BullMQ's workers and producers have been stopped. */
async function moveAll(): Promise<void> {
  for (const job of await queue.getDelayed()) {
    // A job of a job scheduler cannot be removed. It goes with its scheduler.
    if (job.repeatJobKey !== undefined) continue;
    const id = String(job.id);
    try {
      // Not `timestamp + delay`: that is wrong once the delay was changed, or the job was retried.
      const score = await redis.zscore(queue.toKey("delayed"), id);
      const deadline = new Date(Math.floor(Number(score) / 4096));
      await orders.offerAt(job.data, deadline, { key: `job:${id}` });
      await job.remove();
    } catch (error) {
      left.set(`job ${id}`, error);
    }
  }
}

/** Moves all job schedulers. */
async function moveSchedulers(): Promise<void> {
  for (const {
    key,
    every,
    pattern,
    tz,
    endDate,
    template,
    ...counts
  } of await queue.getJobSchedulers()) {
    const { limit, iterationCount = 1 } = counts;
    // The job that waits for its time is counted already.
    const remaining = limit === undefined ? undefined : limit - iterationCount + 1;
    const when =
      pattern === undefined ? { every: Number(every) } : { cron: pattern, timeZone: tz ?? "UTC" };
    try {
      await orders.schedules.upsert(key, {
        ...when,
        ...(endDate !== undefined && { endAt: endDate }),
        ...(remaining !== undefined && { limit: remaining }),
        payload: template?.data as Order,
      });
      await queue.removeJobScheduler(key); // and its next job with it
    } catch (error) {
      left.set(`job scheduler ${key}`, error);
    }
  }
}

// A crash between the last two lines leaves a job in both queues. The key makes it safe to run again.
const [first] = await queue.getDelayed(0, 0);
assert.equal(first?.data.id, 2);
await orders.offer(first.data, 5 * MINUTE, { key: "job:order-2" });
await moveAll();

// Those of the job schedulers are left, and what could not be moved.
assert.equal(await queue.getDelayedCount(), 3);
await moveSchedulers();
assert.equal(await queue.getDelayedCount(), 2);
for (const [what, error] of left) console.log(`${what.slice(0, 30)} stays: ${String(error)}`);
assert.deepEqual([...left.keys()], [`job ${"x".repeat(300)}`, "job scheduler odd"]);
const report = await orders.schedules.get("report");
assert.equal(report?.every, 60 * MINUTE);
assert.equal(report.limit, 5);
// Its next two messages are placed. Without them:
await orders.schedules.pause("report");
assert.equal(await orders.size(), 2);
const minutes = new Map<number, number>();
for await (const { deadline, payload } of orders.insertionOrder) {
  minutes.set(payload.id, Math.round((deadline - startedAt) / MINUTE));
  console.log(`order ${payload.id} is due in ${minutes.get(payload.id)} minutes`);
}
assert.deepEqual([minutes.get(1), minutes.get(2)], [10, 5]);

await orders.clear();
await queue.obliterate();
await queue.close();
await line.close();
redis.disconnect();
