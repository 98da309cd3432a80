/**
 * Subscriptions are renewed each month on their day, at nine by the customer's clock, until they are cancelled. Each has a
 * schedule; each run is a message with its own key, so it is retried, found and paid once.
 *
 *   npx tsx examples/subscription-renewal.ts
 */
import assert from "node:assert/strict";
import { Delayline } from "delayline";
import { startRedis, testClock } from "delayline/testing";

interface Renewal {
  readonly customer: string;
}

await using server = await startRedis();
// A clock that stands still until this program lets time pass. In production: no clock.
await using clock = await testClock({ now: "2026-01-20T12:00:00Z" });
const name = `renewals-${process.pid}`;
const newLine = () => new Delayline({ redis: server.url });

/** The API: it declares schedules, and moves and takes nothing. */
await using api = new Delayline({ redis: server.url, transfer: false });
const { schedules } = api.getReliableQueue<Renewal>(name);

async function subscribe(customer: string, day: number, timeZone: string): Promise<void> {
  await schedules.upsert(`renew:${customer}`, {
    cron: `0 9 ${day} * *`, // From the 29th on: "L", the last day of the month.
    timeZone,
    payload: { customer },
    overlap: "skip",
  });
}

async function cancel(customer: string): Promise<void> {
  await schedules.remove(`renew:${customer}`);
}

// These stand for the bank. A payment is identified by the tick: a second attempt is no second payment.
const paid = new Map<string, string>();
let isDown = false;
function charge(customer: string, payment: string): void {
  if (isDown) throw new Error("the bank does not answer");
  paid.set(payment, `${customer}, at ${clock.now.toISOString()}`);
}

/** A worker, until its client is closed. */
function work(): Delayline {
  const line = newLine();
  line.on("error", (error) => console.log(error.message));
  const renewals = line.getReliableQueue<Renewal>(name, { retry: [60_000, 3_600_000] });
  renewals.subscribe(({ customer }, { key = "" }) => charge(customer, key), {
    concurrency: 20,
    onError: (error) => console.log(String(error)),
  });
  return line;
}

let worker = work();
await subscribe("ada", 5, "Europe/Berlin");
await subscribe("ada", 5, "Europe/Berlin"); // A second click changes nothing.
await subscribe("bob", 28, "America/New_York");

// Two months. In February the bank is down for a while; then bob cancels.
await clock.advanceTo(new Date("2026-02-05T07:00:00Z"));
isDown = true;
await clock.advanceTo(new Date("2026-02-05T08:30:00Z"));
isDown = false;
await clock.advanceTo(new Date("2026-03-03T12:00:00Z"));
await cancel("bob");

// In March nobody works for three days: the payment is late, and still one.
await worker.close();
await clock.advanceTo(new Date("2026-03-08T12:00:00Z"));
worker = work();
await clock.advanceTo(new Date("2026-04-10T12:00:00Z"));
await worker.close();

const payments = [...paid].map(([payment, what]) => `${payment}: ${what}`);
console.log(payments.join("\n"));
assert.deepEqual(payments, [
  "schedule:renew:bob@2026-01-28T14:00:00.000Z: bob, at 2026-01-28T14:00:00.000Z",
  "schedule:renew:ada@2026-02-05T08:00:00.000Z: ada, at 2026-02-05T09:01:00.000Z", // the second retry
  "schedule:renew:bob@2026-02-28T14:00:00.000Z: bob, at 2026-02-28T14:00:00.000Z",
  "schedule:renew:ada@2026-03-05T08:00:00.000Z: ada, at 2026-03-08T12:00:00.000Z", // when there was a worker again
  "schedule:renew:ada@2026-04-05T07:00:00.000Z: ada, at 2026-04-05T07:00:00.000Z", // nine o'clock of summer time
]);
const ada = await schedules.get("renew:ada");
assert.deepEqual([ada?.count, ada?.missed], [5, 0]); // three that came, and two that are placed
for await (const { name: found } of schedules.list()) assert.equal(found, "renew:ada");
