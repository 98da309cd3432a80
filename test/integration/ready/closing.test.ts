import { beforeEach, describe, expect, test } from "vitest";
import { LeftRunningError, type BlockingQueue } from "../../../src/index.ts";
import type { HandlerContext } from "../../../src/queue/consuming/handler.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

let name: string;
let line: TestLine;
let queue: BlockingQueue<number>;

beforeEach(() => {
  name = uniqueName("closing");
  line = newLine();
  queue = line.getBlockingQueue(name);
});

/** Something that waits until it is released. */
class Gate {
  open: () => void = () => {};
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
}

/** Whether a promise is settled after a few round trips to Redis. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = () => (settled = true);
  promise.then(note, note);
  const redis = newRedis();
  for (let i = 0; i < 20; i++) await redis.ping();
  return settled;
}

describe("a for await loop", () => {
  test("delays close until its body ends, which may still offer", async () => {
    const gate = new Gate();
    const bodies: number[] = [];
    const delayed = line.getDelayedQueue<number>(name);
    const looping = (async () => {
      for await (const message of queue) {
        bodies.push(message);
        await gate.opened;
        await delayed.offer(message + 1, 60_000);
      }
    })();
    await queue.putMany([1, 2]);
    await eventually(() => bodies.length === 1);

    const closing = line.close();
    expect(await isSettled(closing)).toBe(false);
    gate.open();
    await closing;
    await looping;

    // The second message was left to others.
    expect(bodies).toEqual([1]);
    const later = newLine({ transfer: false });
    expect(await later.getBlockingQueue(name).readAll()).toEqual([2]);
    expect(await later.getDelayedQueue(name).insertionOrder.readAll()).toEqual([2]);
  });

  test.each<[string, () => Promise<void>]>([
    [
      "break",
      async () => {
        for await (const _ of queue) break;
      },
    ],
    [
      "return",
      async () => {
        for await (const _ of queue) return;
      },
    ],
    [
      "a throw",
      async () => {
        const looping = (async () => {
          for await (const message of queue) throw new Error(`no ${message}`);
        })();
        await expect(looping).rejects.toThrow("no 1");
      },
    ],
    [
      "return() of its iterator",
      async () => {
        const iterator = queue[Symbol.asyncIterator]();
        expect(await iterator.next()).toEqual({ done: false, value: 1 });
        await iterator.return();
      },
    ],
    [
      "nothing: its iterator was never asked",
      async () => {
        queue[Symbol.asyncIterator]();
      },
    ],
  ])("left by %s delays nothing", async (_, loop) => {
    await queue.put(1);
    await loop();
    await line.close();
  });

  test("that waits for a message ends", async () => {
    let count = 0;
    const looping = (async () => {
      for await (const _ of queue) count++;
    })();
    await queue.put(1);
    await eventually(() => count === 1);
    await line.close();
    await looping;
  });

  test("whose iterator is dropped by hand delays close up to the timeout", async () => {
    const troubled = newLineThatMayFail();
    const dropped = troubled.getBlockingQueue(name);
    await dropped.put(1);
    await dropped[Symbol.asyncIterator]().next();
    const closing = troubled.close();
    expect(await isSettled(closing)).toBe(false);
    // A later call may shorten the wait.
    await troubled.close({ handlerTimeout: 10 });
    await closing;
    await eventually(() => expect(troubled.errors).toMatchObject([{ queue: name, count: 1 }]));
  });
});

describe("a timeout", () => {
  test("of the client bounds the wait for handlers and loops, and reports which still run", async () => {
    const troubled = newLineThatMayFail();
    const other = uniqueName("closing");
    const idle = uniqueName("closing");
    const started: number[] = [];
    const gate = new Gate();
    const afterwards: unknown[] = [];
    const ready = troubled.getBlockingQueue<number>(name);
    ready.subscribe(
      async (message) => {
        started.push(message);
        await gate.opened;
        await ready.put(message).catch((error: unknown) => afterwards.push(error));
      },
      { concurrency: 2 },
    );
    troubled.getBlockingQueue<number>(idle).subscribe(() => {});
    void (async () => {
      for await (const message of troubled.getBlockingQueue<number>(other)) {
        started.push(message);
        await gate.opened;
      }
    })();
    await queue.putMany([1, 2]);
    await line.getBlockingQueue(other).put(3);
    await eventually(() => started.length === 3);

    await troubled.close({ handlerTimeout: 50 });
    await eventually(() => troubled.errors.length === 2);
    for (const error of troubled.errors) expect(error).toBeInstanceOf(LeftRunningError);
    expect(troubled.errors).toMatchObject([
      {
        code: "LEFT_RUNNING",
        queue: name,
        count: 2,
        message: `2 handler(s) of queue "${name}" were still running when close() stopped waiting for them`,
      },
      { code: "LEFT_RUNNING", queue: other, count: 1 },
    ]);

    // Their connections have ended.
    gate.open();
    await eventually(() => afterwards.length === 2);
    expect(afterwards).toMatchObject([{ code: "CLOSED" }, { code: "CLOSED" }]);
  });

  test("has reported the running handlers when it resolves, so that the caller may exit then", async () => {
    const troubled = newLineThatMayFail();
    const gate = new Gate();
    const subscription = troubled.getBlockingQueue(name).subscribe(() => gate.opened);
    await queue.put(1);
    await eventually(() => subscription.running === 1);
    const errors = await troubled.close({ handlerTimeout: 20 }).then(() => [...troubled.errors]);
    expect(errors).toMatchObject([{ code: "LEFT_RUNNING", queue: name, count: 1 }]);
    gate.open();
  });

  test("of a subscription bounds the wait for its handlers, and the client keeps working", async () => {
    const troubled = newLineThatMayFail();
    const gate = new Gate();
    const subscription = troubled.getBlockingQueue(name).subscribe(() => gate.opened);
    await queue.put(1);
    await eventually(() => subscription.running === 1);

    await subscription.close({ handlerTimeout: 20 });
    await eventually(() => troubled.errors.length === 1);
    expect(troubled.errors).toMatchObject([{ code: "LEFT_RUNNING", queue: name, count: 1 }]);
    await troubled.getBlockingQueue(name).put(2);
    expect(await queue.size()).toBe(1);

    gate.open();
    await subscription.close();
    expect(subscription.running).toBe(0);
  });

  test("that is not reached reports nothing, and does not delay close", async () => {
    const subscription = queue.subscribe(() => {});
    const startedAt = performance.now();
    await subscription.close({ handlerTimeout: 60_000 });
    await line.close({ handlerTimeout: 60_000 });
    expect(performance.now() - startedAt).toBeLessThan(30_000);
  });

  test.each<[unknown, string]>([
    [{ handlertimeout: 1 }, 'close option must be one of handlerTimeout, got "handlertimeout"'],
    [
      { timeout: 1 },
      'close option must be one of handlerTimeout, got "timeout"; did you mean handlerTimeout?',
    ],
    [
      { handlerTimeout: -1 },
      "handlerTimeout must be between 0 and 946728000000 ms (30 years), got -1",
    ],
    [{ handlerTimeout: "1" }, "handlerTimeout must be a number of milliseconds, got string"],
    [5000, "close options must be an object, got 5000"],
    [null, "close options must be an object, got null"],
  ])("that is illegal is refused, and nothing is closed: %j", async (options, message) => {
    const subscription = queue.subscribe(() => {});
    await expect(subscription.close(options as never)).rejects.toThrow(message);
    await expect(line.close(options as never)).rejects.toThrow(message);
    await queue.put(1);
    await eventually(async () => (await queue.size()) === 0);
  });
});

describe("handlers", () => {
  test("are counted while they run", async () => {
    const gate = new Gate();
    const subscription = queue.subscribe(() => gate.opened, { concurrency: 3 });
    expect(subscription.running).toBe(0);
    await queue.putMany([1, 2]);
    await eventually(() => subscription.running === 2);
    gate.open();
    await eventually(() => subscription.running === 0);
  });

  test.each(["the subscription", "the client"])(
    "are informed when %s begins to close",
    async (what) => {
      const contexts: HandlerContext[] = [];
      const reasons: string[] = [];
      const subscription = queue.subscribe(async (_, context) => {
        contexts.push(context);
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
        reasons.push((context.signal.reason as Error).name);
      });
      await queue.put(1);
      await eventually(() => contexts.length === 1);
      expect(contexts[0]?.signal.aborted).toBe(false);
      await (what === "the client" ? line : subscription).close();
      expect(reasons).toEqual(["AbortError"]);
    },
  );

  test("may all listen to their signal without a warning of a leak", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", onWarning);
    const subscription = queue.subscribe(
      (_, { signal }) =>
        new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true })),
      { concurrency: 30 },
    );
    await queue.putMany(Array.from({ length: 30 }, (_, i) => i));
    await eventually(() => subscription.running === 30);
    await subscription.close();
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });
});

test("a call that does not wait for messages is finished, also if the client had not connected yet", async () => {
  await queue.put(1);
  const other = newLine({ transfer: false });
  const taking = other.getBlockingQueue<number>(name).poll();
  await other.close();
  expect(await taking).toBe(1);
});
