/**
 * Tests of queues with a clock that stands still until the test lets time pass: with `node:test`, on a real Redis. The
 * same works in Vitest and Jest.
 *
 *   npx tsx examples/test-clock.ts
 */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Delayline } from "delayline";
import { startRedis, testClock } from "delayline/testing";

const redis = await startRedis();
after(() => redis.stop());

const DAY = 86_400_000;

void test("a reminder comes after 30 days, and not if the invoice is paid", async () => {
  await using clock = await testClock({ now: "2026-03-28T08:00:00Z" });
  await using line = new Delayline({ redis: redis.url });
  const name = `reminders-${process.pid}`;
  const reminded: string[] = [];
  line.getBlockingQueue<string>(name).subscribe((invoice) => void reminded.push(invoice));
  const reminders = line.getDelayedQueue<string>(name);

  await reminders.offer("paid in time", 30 * DAY, { key: "invoice:1" });
  await reminders.offer("forgotten", 30 * DAY, { key: "invoice:2" });
  await clock.advance("29 days");
  assert.deepEqual(reminded, []);
  await reminders.cancel("invoice:1");
  await clock.advance("1 day");
  assert.deepEqual(reminded, ["forgotten"]);
});

void test("a partner that is down for an hour is told in the end", async () => {
  await using clock = await testClock({ now: "2026-03-28T08:00:00Z" });
  await using line = new Delayline({ redis: redis.url });
  const notices = line.getReliableQueue<string>(`notices-${process.pid}`, {
    retry: [2 * 60_000, 10 * 60_000],
  });
  const up = Date.parse("2026-03-28T09:00:00Z");
  const told: string[] = [];
  notices.subscribe(
    (notice) => {
      if (clock.now.getTime() < up) throw new Error("the partner is down");
      told.push(`${notice} at ${clock.now.toISOString()}`);
    },
    { onError: () => {} },
  );

  await notices.offer("payment 42", 0);
  await clock.advance("1 day");
  assert.deepEqual(told, ["payment 42 at 2026-03-28T09:02:00.000Z"]);
});

void test("a long handler keeps its message", async () => {
  await using clock = await testClock();
  await using line = new Delayline({ redis: redis.url });
  const films = line.getReliableQueue<string>(`films-${process.pid}`, {
    leaseTimeout: 60_000,
  });
  let runs = 0;
  films.subscribe(async () => {
    runs++;
    await clock.sleep("20 min");
  });

  await films.offer("film", 0);
  await clock.advance("19 min");
  assert.equal((await films.stats()).inFlight, 1);
  await clock.advance("1 min");
  assert.equal((await films.stats()).inFlight, 0);
  assert.equal(runs, 1);
});
