/**
 * Orders that nobody pays in time are cancelled. The database decides; the message only says "look again".
 *
 *   npx tsx examples/recipes/order-timeouts.ts
 *
 * The page: docs/recipes/order-timeouts.md.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline, OfferError, RedisError } from "delayline";
import { startRedis } from "delayline/testing";
import sqlite from "node-sqlite3-wasm";

const TIME_TO_PAY = 1_000; // 15 * 60_000 in a shop

// SQLite stands for your database. In PostgreSQL the statements are the same, with $1 for ?.
const database = new sqlite.Database();
database.exec(`
  CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL, pay_by INTEGER NOT NULL);
  CREATE INDEX orders_open ON orders (pay_by) WHERE state = 'placed';
`);

await using server = await startRedis();
await using line = new Delayline({ redis: server.url, callTimeout: 500 });
line.on("error", (error) => console.log("background:", error.message));
const timeouts = line.getReliableQueue<number>(`order-timeouts-${process.pid}`, {
  retry: [1_000, 60_000, 600_000],
});

async function place(id: number): Promise<void> {
  const sql = "INSERT INTO orders (id, state, pay_by) VALUES (?, 'placed', ?)";
  database.run(sql, [id, Date.now() + TIME_TO_PAY]);
  try {
    await timeouts.offer(id, TIME_TO_PAY, { key: `order:${id}` });
  } catch (error) {
    // The order stands. If its message is not stored, the sweep offers it.
    if (!(error instanceof OfferError)) throw error;
    console.log(`order ${id} is left to the sweep: ${error.message}`);
  }
}

/** Returns false if it is too late. */
async function pay(id: number): Promise<boolean> {
  const sql = "UPDATE orders SET state = 'paid' WHERE id = ? AND state = 'placed' RETURNING id";
  if (database.get(sql, [id]) === null) return false;
  try {
    await timeouts.cancel(`order:${id}`);
  } catch (error) {
    // It may still be delivered. Then the handler finds the order paid, and does nothing.
    if (!(error instanceof RedisError)) throw error;
    console.log(`order ${id} is paid; the effect of cancel: ${error.effect}`);
  }
  return true;
}

/** Called once or more often for an order: the second call changes nothing. */
function cancelUnlessPaid(id: number): void {
  const sql =
    "UPDATE orders SET state = 'cancelled' WHERE id = ? AND state = 'placed' RETURNING id";
  const isCancelled = database.get(sql, [id]) !== null;
  console.log(`order ${id} ${isCancelled ? "is cancelled" : "needs nothing"}`);
}

/** Offers what was never offered, or is lost. Every minute or so, in one process or in all. */
async function sweep(): Promise<void> {
  const sql =
    "SELECT id FROM orders WHERE state = 'placed' AND pay_by < ? ORDER BY pay_by LIMIT 100";
  const overdue = database.all(sql, [Date.now() - GRACE]);
  for (const { id } of overdue) {
    await timeouts.offer(Number(id), 0, { key: `order:${Number(id)}` });
  }
  if (overdue.length > 0) console.log(`the sweep has found ${overdue.length}`);
}
const GRACE = 500; // a minute in a shop: longer than messages are late

timeouts.subscribe(cancelUnlessPaid, { concurrency: 10 });
const sweeping = setInterval(() => void sweep().catch(console.error), 500);

// All goes well.
for (const id of [1, 2, 3]) await place(id);
assert.equal(await pay(2), true);
await timeout();
assert.deepEqual(states(), { 1: "cancelled", 2: "paid", 3: "cancelled" });
assert.equal(await pay(3), false);

// A process dies between the insert and the offer: the sweep finds the order.
database.run("INSERT INTO orders (id, state, pay_by) VALUES (4, 'placed', ?)", [Date.now()]);
await timeout();
assert.equal(states()[4], "cancelled");

// Redis hangs while orders are placed and paid. Nobody waits for long, and no order is stuck.
await place(5);
assert.ok(server.pid !== undefined, "unset REDIS_URL: this example stops its Redis for a moment");
process.kill(server.pid, "SIGSTOP");
await place(6);
assert.equal(await pay(5), true);
process.kill(server.pid, "SIGCONT");
await timeout();
await timeout();
assert.deepEqual({ 5: states()[5], 6: states()[6] }, { 5: "paid", 6: "cancelled" });

clearInterval(sweeping);
await line.close();
database.close();
console.log("each order is paid or cancelled, never both");

/** Waits until orders that nobody pays are overdue, handled and swept. */
async function timeout(): Promise<void> {
  await sleep(TIME_TO_PAY + GRACE + 1_000);
}

function states(): Record<number, unknown> {
  const rows = database.all("SELECT id, state FROM orders");
  return Object.fromEntries(rows.map(({ id, state }) => [Number(id), state]));
}
