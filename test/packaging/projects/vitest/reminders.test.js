import { Delayline } from "delayline";
import { startRedis, testClock } from "delayline/testing";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";

let server;
beforeAll(async () => void (server = await startRedis()));
afterEach(() => vi.useRealTimers());
afterAll(() => server.stop());

test("a reminder comes after thirty days", async () => {
  vi.useFakeTimers();
  const clock = await testClock({ now: "2026-03-28T08:00:00Z", timers: vi });
  const line = new Delayline({ redis: server.url });
  const reminders = line.getReliableQueue(`reminders-${process.pid}`);
  const sent = [];
  reminders.subscribe(async (invoice) => {
    await new Promise((resolve) => setTimeout(resolve, 1_000)); // the mail server is slow
    sent.push(`${invoice} at ${new Date().toISOString()}`);
  });

  await reminders.offer("invoice 8", 30 * 86_400_000);
  await clock.advance("30 days");
  await clock.advance("1 s");
  expect(sent).toEqual(["invoice 8 at 2026-04-27T08:00:01.000Z"]);
  await line.close();
  await clock.close();
});
