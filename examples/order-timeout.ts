/**
 * Orders that nobody pays in time are cancelled.
 *
 * Placing an order offers its timeout to a delayed queue, with the order's key. Paying cancels the timeout by that key
 * before it is due. Workers take due timeouts and cancel their orders.
 *
 *   npx tsx examples/order-timeout.ts             a producer and two workers, then a check
 *   npx tsx examples/order-timeout.ts producer    one of them, on the Redis at REDIS_URL
 *   npx tsx examples/order-timeout.ts worker
 */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";

interface Order {
  readonly id: string;
  readonly amount: number;
}

/** The state of an order. A list in Redis stands for your database. */
type State = "placed" | "paid" | "cancelled";

const ORDERS = 20;
const TIME_TO_PAY = 2_000;

const [role, queue = "order-timeouts"] = process.argv.slice(2);
const redisUrl = process.env["REDIS_URL"] ?? "redis://localhost:6379";

if (role === "producer") await produce();
else if (role === "worker") await work();
else await runAll();

/** Places orders. Every second one is paid in time. */
async function produce(): Promise<void> {
  const database = new Redis(redisUrl);
  await using line = new Delayline({ redis: redisUrl });
  // This process only offers; the workers move due messages.
  const timeouts = line.getDelayedQueue<Order>(queue, { transfer: false });

  async function buy(number: number): Promise<void> {
    const order: Order = { id: randomUUID().slice(0, 8), amount: 10 * number };
    // In this order: if the process dies in between, a timeout without its order does no harm, but an order without its
    // timeout would stay open for ever.
    const key = `order:${order.id}`;
    await timeouts.offer(order, TIME_TO_PAY, { key });
    await save(database, order.id, "placed");
    if (number % 2 === 0) return;

    await sleep((Math.random() * TIME_TO_PAY) / 2);
    // True: the timeout will never be delivered. False: it is too late, the order gets cancelled.
    if (await timeouts.cancel(key)) await save(database, order.id, "paid");
  }

  await Promise.all(Array.from({ length: ORDERS }, (_, i) => buy(i)));
  await line.close();
  database.disconnect();
}

/** Cancels orders whose time is over, until SIGTERM. */
async function work(): Promise<void> {
  const database = new Redis(redisUrl);
  const line = new Delayline({ redis: redisUrl });
  line
    .getBlockingQueue<Order>(queue)
    .subscribe((order) => save(database, order.id, "cancelled"), { concurrency: 10 });

  const stopped = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
  process.send?.("ready");
  await stopped;
  await line.close();
  database.disconnect();
}

async function save(database: Redis, id: string, state: State): Promise<void> {
  await database.rpush(`${queue}:states`, JSON.stringify([id, state]));
  console.log(`${role} ${process.pid}: order ${id} is ${state}`);
}

/** Runs all three as separate processes, and checks the final states of the orders. */
async function runAll(): Promise<void> {
  await using redis = await startRedis();
  await using line = new Delayline({ redis: redis.url, transfer: false });
  const name = `order-timeouts-${randomUUID()}`;
  const start = (part: string) =>
    fork(new URL(import.meta.url), [part, name], {
      env: { ...process.env, REDIS_URL: redis.url },
    });

  const workers = [start("worker"), start("worker")];
  await Promise.all(workers.map((worker) => once(worker, "message")));
  assert.deepEqual(await once(start("producer"), "exit"), [0, null]);
  while (!(await line.getDelayedQueue(name).isEmpty())) await sleep(50);
  while ((await line.getBlockingQueue(name).size()) > 0) await sleep(50);
  for (const worker of workers) {
    worker.kill("SIGTERM"); // it finishes its running handlers
    assert.deepEqual(await once(worker, "exit"), [0, null]);
  }

  const database = new Redis(redis.url);
  const states = new Map<string, State[]>();
  for (const entry of await database.lrange(`${name}:states`, 0, -1)) {
    const [id, state] = JSON.parse(entry) as [string, State];
    states.set(id, [...(states.get(id) ?? []), state]);
  }
  await database.del(`${name}:states`);
  database.disconnect();

  const ends = [...states.values()].map((history) => history.join(", "));
  assert.equal(ends.length, ORDERS);
  assert.equal(ends.filter((end) => end === "placed, paid").length, ORDERS / 2);
  assert.equal(ends.filter((end) => end === "placed, cancelled").length, ORDERS / 2);
  console.log(`${ORDERS} orders: half of them paid, the others cancelled, each once`);
}
