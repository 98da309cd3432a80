/** Fake timers of a test framework do not stop the client. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newLine, type TestLine } from "../../helpers/delayline.ts";
import { Gate } from "../../helpers/gate.ts";
import { uniqueName } from "../../helpers/redis.ts";

let name: string;
let line: TestLine;

beforeEach(() => {
  name = uniqueName("fake");
  line = newLine();
});

afterEach(() => {
  vi.useRealTimers();
});

/** What Vitest can fake in a process of its own. Jest fakes `nextTick` as well: `test/packaging/projects/jest`. */
const ALL = [
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
  "Date",
  "performance",
  "queueMicrotask",
] as const;

test("Vitest's fake timers may be installed before the first connection", async () => {
  vi.useFakeTimers();
  const queue = line.getDelayedQueue(name);
  const taking = line.getBlockingQueue(name).take();
  await queue.offer("due", 50);
  expect(await taking).toBe("due");
  await line.close();
});

test("all fake timers may be installed once the connections are open", async () => {
  const queue = line.getReliableQueue(name, { retry: [20], leaseTimeout: 100 });
  const attempts: number[] = [];
  const done = new Gate();
  await queue.offer("first", 0);
  await (await queue.take()).ack();

  vi.useFakeTimers({ toFake: [...ALL], now: 0 });
  const subscription = queue.subscribe(
    (_, { attempt }) => {
      attempts.push(attempt);
      if (attempt < 3) throw new Error("again");
      done.open();
    },
    { onError: () => {} },
  );
  const before = await line.serverTime();
  await queue.offer("due", 50);
  await done.opened;
  expect(attempts).toEqual([1, 2, 3]);
  // It is the server's clock, and the real monotonic one.
  expect((await line.serverTime()) - before).toBeGreaterThan(80);
  await subscription.close();
  await line.close();
});

test("a faked Date changes only what the test computes with it", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date("2030-01-01") });
  const queue = line.getDelayedQueue(name);
  const { deadline } = await queue.offer("delay", 1000);
  expect(new Date(deadline).getUTCFullYear()).toBeLessThan(2030);
  const at = await queue.offerAt("date", new Date(Date.now() + 1000));
  expect(new Date(at.deadline).getUTCFullYear()).toBe(2030);
});
