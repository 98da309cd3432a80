/**
 * A reminder every morning at 9:00 in the customer's time zone, until it is switched off. Each reminder offers the next.
 *
 *   npx tsx examples/daily-reminders.ts
 *
 * For some thousands of customers, use a schedule for each: docs/guide/schedules.md.
 */
import assert from "node:assert/strict";
import { Delayline } from "delayline";
import { startRedis, testClock } from "delayline/testing";

interface Reminder {
  readonly customer: string;
  readonly timeZone: string;
  /** The day for which it is, as in "2026-03-28". */
  readonly day: string;
}

await using server = await startRedis();
// A clock that stands still until this program lets time pass. In production: no clock, and `new Date()` for its `now`.
await using clock = await testClock({ now: "2026-03-27T12:00:00Z" });
await using line = new Delayline({ redis: server.url });
const reminders = line.getReliableQueue<Reminder>(`reminders-${process.pid}`, {
  retry: [60_000, 600_000],
});

/** Offers the first reminder after `after`. A second call for the same day changes nothing while that one waits. */
async function offerNext(customer: string, timeZone: string, after: Date): Promise<void> {
  const { day, at } = nextMorning(after, timeZone);
  await reminders.offerAt({ customer, timeZone, day }, at, { key: keyOf(customer, day) });
}

async function switchOff(customer: string): Promise<void> {
  active.delete(customer);
  await reminders.cancelWhere({ prefix: `reminder:${customer}:` });
}

async function remind({ customer, timeZone, day }: Reminder): Promise<void> {
  if (!active.has(customer)) return; // it was switched off while this one was on its way
  // First the next one: whatever happens to this one, the chain goes on.
  await offerNext(customer, timeZone, clock.now);
  if (sent.has(keyOf(customer, day))) return; // sent by an attempt whose process died
  await send(customer, day);
  sent.add(keyOf(customer, day));
}

function keyOf(customer: string, day: string): string {
  return `reminder:${customer}:${day}`;
}

/** Nine o'clock of the next day that begins its morning after `after`, by the customer's clock. */
function nextMorning(after: Date, timeZone: string): { readonly day: string; readonly at: Date } {
  for (let ahead = 0; ; ahead++) {
    const day = dayOf(new Date(after.getTime() + ahead * 86_400_000), timeZone);
    // The offset at that instant: days of 23 and of 25 hours have one each.
    const noon = new Date(`${day}T12:00:00Z`);
    const local = new Date(`${noon.toLocaleString("sv-SE", { timeZone }).replace(" ", "T")}Z`);
    const at = new Date(Date.parse(`${day}T09:00:00Z`) - (local.getTime() - noon.getTime()));
    if (at > after) return { day, at };
  }
}

function dayOf(instant: Date, timeZone: string): string {
  return instant.toLocaleDateString("sv-SE", { timeZone });
}

// These stand for two tables of your database.
const active = new Set(["ada", "bob"]);
const sent = new Set<string>();

const log: string[] = [];
let isDown = false;
async function send(customer: string, day: string): Promise<void> {
  if (isDown) throw new Error("the mail server is down");
  log.push(`${customer} ${day}, sent at ${clock.now.toISOString()}`);
}

reminders.subscribe(remind, { onError: (error) => console.log(String(error)) });
await offerNext("ada", "Europe/Berlin", clock.now);
await offerNext("ada", "Europe/Berlin", clock.now); // a second click changes nothing
await offerNext("bob", "America/New_York", clock.now);
assert.equal(await reminders.size(), 2);

// Two mornings, the clocks go forward in Berlin between them; then the mail server is down for ten minutes.
await clock.advanceTo(new Date("2026-03-29T20:00:00Z"));
await switchOff("bob");
isDown = true;
const waits = clock.sleep("11 hours 10 min").then(() => void (isDown = false));
await clock.advanceTo(new Date("2026-03-30T20:00:00Z"));
await waits;

console.log(log.join("\n"));
assert.deepEqual(log, [
  "bob 2026-03-27, sent at 2026-03-27T13:00:00.000Z",
  "ada 2026-03-28, sent at 2026-03-28T08:00:00.000Z",
  "bob 2026-03-28, sent at 2026-03-28T13:00:00.000Z",
  "ada 2026-03-29, sent at 2026-03-29T07:00:00.000Z",
  "bob 2026-03-29, sent at 2026-03-29T13:00:00.000Z",
  "ada 2026-03-30, sent at 2026-03-30T07:11:00.000Z",
]);
assert.equal(await reminders.size(), 1, "one message for each customer who is active");
