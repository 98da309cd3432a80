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
await queue.upsertJobScheduler("report", inAnHour, { data: { id: 3 } });

/** Moves all delayed jobs. BullMQ's workers and producers have been stopped. */
async function moveAll(): Promise<void> {
  for (const job of await queue.getDelayed()) {
    // A job of a job scheduler cannot be removed. It goes with its scheduler.
    if (job.repeatJobKey !== undefined) continue;
    const id = String(job.id);
    // Not `timestamp + delay`: that is wrong once the delay was changed, or the job was retried.
    const score = await redis.zscore(queue.toKey("delayed"), id);
    const deadline = new Date(Math.floor(Number(score) / 4096));
    await orders.offerAt(job.data, deadline, { key: `job:${id}` });
    await job.remove();
  }
}

/** Moves all job schedulers. */
async function moveSchedulers(): Promise<void> {
  for (const { key, every, pattern, tz, endDate, template } of await queue.getJobSchedulers()) {
    const when =
      pattern === undefined ? { every: Number(every) } : { cron: pattern, timeZone: tz ?? "UTC" };
    await orders.schedules.upsert(key, {
      ...when,
      ...(endDate !== undefined && { endAt: endDate }),
      payload: template?.data as Order,
    });
    await queue.removeJobScheduler(key); // and its next job with it
  }
}

// A crash between the last two lines leaves a job in both queues. The key makes it safe to run again.
const [first] = await queue.getDelayed(0, 0);
assert.equal(first?.data.id, 2);
await orders.offer(first.data, 5 * MINUTE, { key: "job:order-2" });
await moveAll();

// The job that is left belongs to the job scheduler.
assert.equal(await queue.getDelayedCount(), 1);
await moveSchedulers();
assert.equal(await queue.getDelayedCount(), 0);
const report = await orders.schedules.get("report");
assert.equal(report?.every, 60 * MINUTE);
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
