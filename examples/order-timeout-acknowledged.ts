/**
 * Puts back the stock of every order that nobody pays in time, exactly once, although workers are killed meanwhile.
 *
 * A message stays in Redis until it is acknowledged, so the messages of a killed worker are delivered to another one.
 * Their work may already be done. So the work records the delivery's id, which is the same on every delivery, in one
 * transaction.
 *
 *   npx tsx examples/order-timeout-acknowledged.ts
 */
import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";

interface Order {
  readonly number: number;
  readonly pieces: number;
}

const ORDERS = 100;
const KILLS = 4;

/** Stands for a transaction of your database: the id is new and the stock is put back, or neither. */
const PUT_BACK = `
if redis.call("SADD", KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call("HINCRBY", KEYS[2], ARGV[2], ARGV[3])
return 1
`;

const [role, name = `unpaid-${randomUUID()}`] = process.argv.slice(2);
/** The ids of deliveries whose work is done. */
const ids = `${name}:ids`;
/** How many pieces were put back, by order. */
const stock = `${name}:stock`;
/** Orders that were delivered again after the work was done. */
const repeats = `${name}:repeats`;
/** Orders whose handler has ended. */
const ended = `${name}:ended`;

if (role === "worker") await work();
else await runAll();

/** Puts stock back, five orders at a time, until SIGTERM or a kill. */
async function work(): Promise<void> {
  const url = process.env["REDIS_URL"] ?? "redis://localhost:6379";
  const database = new Redis(url);
  const line = new Delayline({ redis: url });
  openQueue(line).subscribe(
    async ({ number, pieces }, { id, attempt }) => {
      const isNew = await database.eval(PUT_BACK, 2, ids, stock, id, number, pieces);
      if (isNew === 0) {
        console.log(`order ${number}, attempt ${attempt}: was put back before its worker died`);
        await database.sadd(repeats, number);
      }
      await sleep(200); // a worker killed here has done the work without acknowledging it
      await database.sadd(ended, number);
    },
    { concurrency: 5 },
  );

  const stopped = once(process, "SIGTERM");
  process.send?.("ready");
  await stopped;
  await line.close();
  database.disconnect();
}

function openQueue(line: Delayline) {
  // A worker that is silent for this long counts as dead.
  return line.getReliableQueue<Order>(name, { leaseTimeout: 2_000 });
}

/** Places orders, kills busy workers, and checks the stock. */
async function runAll(): Promise<void> {
  await using server = await startRedis();
  await using line = new Delayline({ redis: server.url, transfer: false });
  const database = new Redis(server.url);
  const start = (): ChildProcess =>
    fork(new URL(import.meta.url), ["worker", name], {
      env: { ...process.env, REDIS_URL: server.url },
    });

  const orders = Array.from({ length: ORDERS }, (_, number) => ({
    number,
    pieces: 1 + (number % 9),
  }));
  const timeouts = openQueue(line);
  for (const order of orders) {
    await timeouts.offer(order, 10 * order.number, { key: `order:${order.number}` });
  }

  const workers = [start(), start()];
  for (let kill = 1; kill <= KILLS; kill++) {
    while ((await database.scard(ids)) < (ORDERS / 5) * kill) await sleep(10);
    const victim = workers.shift();
    assert.ok(victim);
    victim.kill("SIGKILL");
    await once(victim, "exit");
    console.log(`worker ${victim.pid} was killed`);
    workers.push(start());
  }
  while ((await database.scard(ended)) < ORDERS) await sleep(50);
  for (const worker of workers) {
    worker.kill("SIGTERM"); // it finishes its running handlers
    assert.deepEqual(await once(worker, "exit"), [0, null]);
  }

  const back = await database.hgetall(stock);
  const expected = orders.map(({ number, pieces }) => [String(number), String(pieces)]);
  assert.deepEqual(back, Object.fromEntries(expected), "each order's stock is back, exactly once");
  assert.equal(await timeouts.deadLetters.size(), 0);
  const repeated = await database.scard(repeats);
  assert.ok(repeated > 0, "some were delivered again");
  console.log(
    `${ORDERS} orders are back in stock; ${repeated} of them were delivered twice or more`,
  );
  await database.del(ids, stock, repeats, ended);
  database.disconnect();
}
