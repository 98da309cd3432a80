const { Delayline } = require("delayline");
const { startRedis, testClock } = require("delayline/testing");

const HOUR = 3_600_000;
let server;
let clock;
let line;

beforeAll(async () => {
  server = await startRedis();
});

afterEach(async () => {
  await line.close();
  await clock.close();
  jest.useRealTimers();
});

afterAll(() => server.stop());

test("a ladder of an hour and a day", async () => {
  clock = await testClock({ now: "2026-03-28T08:00:00Z", date: true });
  line = new Delayline({ redis: server.url });
  const queue = line.getReliableQueue(`jest-clock-${process.pid}`, { retry: [HOUR, 24 * HOUR] });
  const attempts = [];
  queue.subscribe(
    () => {
      attempts.push(new Date().toISOString());
      if (attempts.length < 3) throw new Error("again");
    },
    { onError() {} },
  );
  await queue.offer("message", 0);
  await clock.advance("2 days");
  expect(attempts).toEqual([
    "2026-03-28T08:00:00.000Z",
    "2026-03-28T09:00:00.000Z",
    "2026-03-29T09:00:00.000Z",
  ]);
});

test("Jest's fake timers follow the clock", async () => {
  jest.useFakeTimers({ doNotFake: ["nextTick"] });
  clock = await testClock({ now: "2026-03-28T08:00:00Z", timers: jest });
  line = new Delayline({ redis: server.url });
  const name = `jest-timers-${process.pid}`;
  const seen = [];
  line.getBlockingQueue(name).subscribe(async () => {
    await new Promise((resolve) => setTimeout(resolve, HOUR));
    seen.push(new Date().toISOString());
  });
  await line.getDelayedQueue(name).offer("message", HOUR);
  await clock.advance("1 day");
  expect(seen).toEqual(["2026-03-28T10:00:00.000Z"]);
});
