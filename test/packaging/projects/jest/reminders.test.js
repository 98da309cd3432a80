const { Delayline } = require("delayline");
const { startRedis, testClock } = require("delayline/testing");

let server;
beforeAll(async () => void (server = await startRedis()));
afterEach(() => jest.useRealTimers());
afterAll(() => server.stop());

test("a reminder comes after thirty days", async () => {
  jest.useFakeTimers({ doNotFake: ["nextTick"] }); // ioredis needs it
  const clock = await testClock({ now: "2026-03-28T08:00:00Z", timers: jest });
  const line = new Delayline({ redis: server.url });
  const reminders = line.getReliableQueue(`jest-reminders-${process.pid}`);
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
