const { Delayline, DelaylineError, OfferError } = require("delayline");
const { LongCodec } = require("delayline/redisson");
const { startRedis } = require("delayline/testing");

const name = `jest-${process.pid}-${Date.now()}`;
let server;
let line;

beforeAll(async () => {
  server = await startRedis();
  line = new Delayline({ redis: server.url });
});

afterAll(async () => {
  await line.getDelayedQueue(name).clear();
  await line.close();
  await server.stop();
});

test("a message is delivered", async () => {
  await line.getDelayedQueue(name).offer({ id: 42, at: new Date(0) }, 10);
  expect(await line.getBlockingQueue(name).take()).toEqual({ id: 42, at: new Date(0) });

  const codec = new LongCodec();
  await line.getDelayedQueue(`${name}-numbers`, { codec }).offer(42n, 10);
  expect(await line.getBlockingQueue(`${name}-numbers`, { codec }).take()).toBe(42);
});

test("Jest's fake timers do not stop a client whose connections are open", async () => {
  const [queue, ready] = [line.getDelayedQueue(name), line.getBlockingQueue(name)];
  await queue.offer("first", 10);
  expect(await ready.take()).toBe("first");
  jest.useFakeTimers();
  try {
    await queue.offer("due", 50);
    expect(await ready.take()).toBe("due");
  } finally {
    jest.useRealTimers();
  }
});

test("an error is one of ours, and says why", async () => {
  const nowhere = new Delayline({
    redis: "redis://127.0.0.1:1",
    callTimeout: 500,
    transfer: false,
  });
  nowhere.on("error", () => {});
  const error = await nowhere
    .getDelayedQueue(name)
    .offer(1, 1)
    .catch((reason) => reason);
  await nowhere.close();
  expect(error).toBeInstanceOf(OfferError);
  expect(error).toBeInstanceOf(DelaylineError);
  expect(error.message).toContain("ECONNREFUSED");
});
