import { expect, test } from "vitest";
import {
  HandlerError,
  TimeLimitError,
  type DeadLetter,
  type Delivery,
  type ReliableQueue,
  type ReliableQueueOptions,
} from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

/** Handlers that run for longer than they may. */

/** Resolves when a delivery's signal is aborted. */
function aborted({ signal }: Delivery): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}

function newQueue(options: ReliableQueueOptions<string> = {}, line: TestLine = newLine()) {
  return line.getReliableQueue<string>(uniqueName("limit"), { retry: [0], ...options });
}

async function letters(queue: ReliableQueue<string>) {
  const all: DeadLetter<string>[] = [];
  for await (const letter of queue.deadLetters) all.push(letter);
  return all;
}

async function inFlight(name: string): Promise<number> {
  const [count] = (await newRedis().xpending(queueKeys(name).stream, "default")) as [number];
  return count;
}

test("a handler that throws the reason of its signal has failed: it is retried as after any error", async () => {
  const queue = newQueue({ maxAttempts: 2 });
  const told: unknown[] = [];
  const failures: string[][] = [];
  queue.subscribe(
    async (_, delivery) => {
      failures.push(delivery.failures.map(({ reason }) => reason));
      await aborted(delivery);
      throw delivery.signal.reason;
    },
    { timeLimit: 20, onError: (error, payload) => void told.push(error, payload) },
  );
  await queue.offer("a", 0);
  await eventually(async () => (await queue.deadLetters.size()) === 1);
  // The process counts it when Redis has answered.
  await eventually(() => queue.counters.failed === 2);
  const message = `a handler of queue "${queue.name}" has run for its time limit of 20 ms`;
  expect(failures).toEqual([[], [message]]);
  expect(told[0]).toBeInstanceOf(TimeLimitError);
  expect(told[0]).toMatchObject({
    code: "TIME_LIMIT",
    queue: queue.name,
    timeLimit: 20,
    isStuck: false,
    message,
  });
  expect(told[1]).toBe("a");
  expect(queue.counters).toMatchObject({ timedOut: 2, failed: 2, retried: 1, dead: 1 });
  expect((await letters(queue))[0]?.reason).toBe(message);
});

test("one that returns after its limit, within the grace, has succeeded", async () => {
  const queue = newQueue();
  queue.subscribe((_, delivery) => aborted(delivery), { timeLimit: 20 });
  await queue.offer("a", 0);
  await eventually(() => queue.counters.acknowledged === 1);
  expect(queue.counters).toMatchObject({ timedOut: 1, failed: 0 });
});

test("one that ends in time knows nothing of a limit", async () => {
  const queue = newQueue();
  const signals: AbortSignal[] = [];
  queue.subscribe(
    async (_, { signal }) => {
      signals.push(signal);
      await Promise.resolve();
    },
    { timeLimit: 200, grace: 0 },
  );
  await queue.offerMany(["a", "b"].map((payload) => ({ payload, delay: 0 })));
  await eventually(() => queue.counters.acknowledged === 2);
  // Another one that begins now has run for as long: the time of the first two is over.
  const later = newQueue();
  later.subscribe((_, delivery) => aborted(delivery), { timeLimit: 200, grace: 0 });
  await later.offer("c", 0);
  await eventually(() => later.counters.timedOut === 1);
  expect(signals.map(({ aborted: isAborted }) => isAborted)).toEqual([false, false]);
  expect(queue.counters).toMatchObject({ timedOut: 0, failed: 0 });
});

test("one that goes on is given up: the attempt has failed, its slot is free, and it settles nothing", async () => {
  const line = newLineThatMayFail();
  const queue = newQueue({ maxAttempts: 2 }, line);
  const begun: Delivery<string>[] = [];
  const mayEnd = new Gate();
  const verdicts: boolean[] = [];
  const subscription = queue.subscribe(
    async (payload, delivery) => {
      begun.push(delivery);
      if (payload !== "stuck" || delivery.attempt > 1) return;
      await mayEnd.opened;
      verdicts.push(
        await delivery.ack(),
        await delivery.nack(),
        await delivery.reject(),
        await delivery.extend(1000),
      );
    },
    { timeLimit: 20, grace: 30 },
  );
  await queue.offer("stuck", 0);
  await eventually(() => begun.length === 1);
  await queue.offer("next", 0);
  await eventually(() => queue.counters.acknowledged === 2);
  expect(begun.map(({ payload, attempt }) => `${payload} ${attempt}`).toSorted()).toEqual([
    "next 1",
    "stuck 1",
    "stuck 2",
  ]);
  const again = begun.find(({ payload, attempt }) => payload === "stuck" && attempt === 2);
  expect(again?.failures).toMatchObject([
    {
      reason: `a handler of queue "${queue.name}" has run for its time limit of 20 ms and for 30 ms more, so it was given up`,
    },
  ]);
  expect(subscription.running).toBe(0);
  expect(line.errors).toHaveLength(1);
  expect(line.errors[0]).toBeInstanceOf(HandlerError);
  expect(line.errors[0]?.cause).toMatchObject({ code: "TIME_LIMIT", isStuck: true });
  mayEnd.open();
  await eventually(() => verdicts.length === 4);
  expect(verdicts).toEqual([false, false, false, false]);
  expect(await inFlight(queue.name)).toBe(0);
  expect(queue.counters).toMatchObject({
    timedOut: 1,
    failed: 1,
    acknowledged: 2,
    retried: 1,
    dead: 0,
  });
});

test("the lease of one that was given up is not kept", async () => {
  const line = newLineThatMayFail();
  const queue = newQueue({ maxAttempts: 1 }, line);
  const mayEnd = new Gate();
  queue.subscribe(() => mayEnd.opened, { timeLimit: 10, grace: 10 });
  await queue.offer("a", 0);
  await eventually(async () => (await queue.deadLetters.size()) === 1);
  expect(await inFlight(queue.name)).toBe(0);
  mayEnd.open();
});

test("what it throws when it ends after all is reported, unless it is the reason of its signal", async () => {
  const line = newLineThatMayFail();
  const queue = newQueue({ maxAttempts: 1 }, line);
  const mayEnd = new Gate();
  queue.subscribe(
    async (payload, { signal }) => {
      await mayEnd.opened;
      throw payload === "own" ? new Error("too late") : signal.reason;
    },
    { timeLimit: 10, grace: 10, concurrency: 2 },
  );
  await queue.offerMany(["own", "its"].map((payload) => ({ payload, delay: 0 })));
  await eventually(async () => (await queue.deadLetters.size()) === 2);
  await eventually(() => line.errors.length === 2);
  mayEnd.open();
  await eventually(() => line.errors.length === 3);
  await line.close();
  expect(line.errors).toHaveLength(3);
  expect(line.errors[2]?.cause).toEqual(new Error("too late"));
  expect(queue.counters.failed).toBe(2);
});

test("a limit does not change what the handler has settled before", async () => {
  const line = newLineThatMayFail();
  const queue = newQueue({}, line);
  const mayEnd = new Gate();
  queue.subscribe(
    async (_, delivery) => {
      await delivery.ack();
      await mayEnd.opened;
    },
    { timeLimit: 20, grace: 10 },
  );
  await queue.offer("a", 0);
  await eventually(() => line.errors.length === 1);
  expect(await inFlight(queue.name)).toBe(0);
  expect((await queue.stats()).retries).toBe(0);
  expect(queue.counters).toMatchObject({ acknowledged: 1, retried: 0 });
  mayEnd.open();
});

test("a batch has one limit, and what it has settled stays settled", async () => {
  const line = newLineThatMayFail();
  const queue = newQueue({ maxAttempts: 1 }, line);
  const mayEnd = new Gate();
  queue.subscribeBatch(
    async ([first]) => {
      await first?.ack();
      await mayEnd.opened;
    },
    { limit: 3, wait: MINUTE, timeLimit: 50, grace: 10 },
  );
  await queue.offerMany(["a", "b", "c"].map((payload) => ({ payload, delay: 0 })));
  await eventually(async () => (await queue.deadLetters.size()) === 2);
  const found = await letters(queue);
  expect(found.map(({ payload }) => String(payload)).toSorted()).toEqual(["b", "c"]);
  expect(queue.counters).toMatchObject({ timedOut: 1, failed: 1, acknowledged: 1 });
  mayEnd.open();
});

test("a route has its limit, and the next of a sequence begins", async () => {
  const line = newLineThatMayFail();
  const queue = newQueue({ maxAttempts: 1 }, line);
  const mayEnd = new Gate();
  const ended: string[] = [];
  queue.route(
    {
      a: async (payload) => {
        if (payload === "stuck") await mayEnd.opened;
        ended.push(payload);
      },
    },
    { timeLimit: 20, grace: 20, concurrency: 5, orderBy: () => "one" },
  );
  await queue.offer("stuck", 0, { key: "a:1" });
  await queue.offer("next", 0, { key: "a:2" });
  await eventually(() => ended.length === 1);
  expect(ended).toEqual(["next"]);
  mayEnd.open();
});

test.each([false, true])(
  "with one consumer per key the next one begins (strict: %s)",
  async (strict) => {
    const line = newLineThatMayFail();
    const name = uniqueName("limit");
    const queue = line.getReliableQueue<string>(name, {
      exclusive: true,
      strict,
      partitions: 1,
      retry: [10],
    });
    const mayEnd = new Gate();
    const begun: string[] = [];
    queue.subscribe(
      async (payload, { attempt }) => {
        begun.push(`${payload} ${attempt}`);
        if (payload === "first" && attempt === 1) await mayEnd.opened;
      },
      { timeLimit: 50, grace: 20 },
    );
    await queue.offer("first", 0, { key: "k" });
    await eventually(() => begun.length === 1);
    await queue.offer("second", 0, { key: "k" });
    await eventually(() => begun.length === 3);
    if (strict) expect(begun).toEqual(["first 1", "first 2", "second 1"]);
    else expect(begun.toSorted()).toEqual(["first 1", "first 2", "second 1"]);
    await eventually(() => queue.counters.acknowledged === 2);
    mayEnd.open();
  },
);

test("closing waits for a handler until its time and its grace are over", async () => {
  const line = newLineThatMayFail();
  const name = uniqueName("limit");
  const queue = line.getReliableQueue<string>(name, { retry: [0] });
  const mayEnd = new Gate();
  let isRunning = false;
  queue.subscribe(
    async () => {
      isRunning = true;
      await mayEnd.opened;
    },
    { timeLimit: 300, grace: 50 },
  );
  await queue.offer("a", 0);
  await eventually(() => isRunning);
  await line.close();
  const [error] = line.errors;
  expect(error?.cause).toMatchObject({ code: "TIME_LIMIT", isStuck: true });
  expect(line.errors).toHaveLength(1);
  const next = await newLine().getReliableQueue<string>(name).take();
  expect([next.attempt, next.failures.length]).toEqual([2, 1]);
  mayEnd.open();
});

test("a handler that was revoked and goes on is given up as well; who revoked waits for its end", async () => {
  const line = newLineThatMayFail();
  const queue = newQueue({}, line);
  const mayEnd = new Gate();
  let isRunning = false;
  const subscription = queue.subscribe(
    async () => {
      isRunning = true;
      await mayEnd.opened;
    },
    { timeLimit: 100, grace: 20 },
  );
  const { id } = await queue.offer("a", 0);
  await eventually(() => isRunning);
  const revoking = queue.revoke(id, { wait: 60_000 });
  await eventually(() => subscription.running === 0);
  expect(line.errors[0]?.cause).toMatchObject({ isStuck: true });
  expect(queue.counters.failed).toBe(0);
  mayEnd.open();
  expect(await revoking).toMatchObject({ stage: "running", hasEnded: true });
});

test("limits pass on a clock that a test turns", async () => {
  const clock = await newClock();
  const line = newLineThatMayFail();
  const queue = newQueue({ retry: [MINUTE], leaseTimeout: 30 * SECOND }, line);
  const ends: string[] = [];
  const startedAt = clock.now.getTime();
  queue.subscribe(
    async (_, { attempt, signal }) => {
      const long = clock.sleep(10 * MINUTE);
      signal.addEventListener("abort", () => {
        ends.push(`${attempt} aborted at ${(clock.now.getTime() - startedAt) / SECOND}`);
      });
      if (attempt === 1) await long;
    },
    { timeLimit: 2 * MINUTE, grace: 10 * SECOND },
  );
  await queue.offer("a", 0);
  await clock.advance(5 * MINUTE);
  expect(ends).toEqual(["1 aborted at 120"]);
  expect(queue.counters).toMatchObject({ timedOut: 1, failed: 1, acknowledged: 1 });
});
