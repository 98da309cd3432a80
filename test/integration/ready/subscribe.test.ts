import type { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { Subscription } from "../../../src/queue/consuming/subscription.ts";
import { HandlerError, type BlockingQueue, type DelayedQueue } from "../../../src/index.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { upTo } from "../../helpers/numbers.ts";

let redis: Redis;
let name: string;
let line: TestLine;
let queue: BlockingQueue<number>;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("subscribe");
  line = newLine();
  queue = line.getBlockingQueue(name);
});

/** A handler that holds each message until it is released. */
class Holding {
  readonly started: number[] = [];
  readonly finished: number[] = [];
  most = 0;
  readonly #held = new Map<number, () => void>();
  #isOpen = false;

  readonly handle = async (payload: number): Promise<void> => {
    this.started.push(payload);
    this.most = Math.max(this.most, this.started.length - this.finished.length);
    if (!this.#isOpen) {
      await new Promise<void>((resolve) => this.#held.set(payload, resolve));
    }
    this.finished.push(payload);
  };

  /** Releases one message. */
  release(payload: number): void {
    this.#held.get(payload)?.();
  }

  /** Releases all messages, now and later. */
  open(): void {
    this.#isOpen = true;
    for (const release of this.#held.values()) release();
  }
}

describe("a subscription", () => {
  test("handles ready and later messages in order, one at a time", async () => {
    const handler = new Holding();
    handler.open();
    await queue.putMany([0, 1, 2]);
    queue.subscribe(handler.handle);
    await eventually(() => handler.finished.length === 3);
    await queue.putMany([3, 4]);
    await eventually(() => handler.finished.length === 5);
    expect(handler.started).toEqual(upTo(5));
    expect(handler.finished).toEqual(upTo(5));
    expect(handler.most).toBe(1);
  });

  test("handles delayed messages when they are due", async () => {
    const delayed = line.getDelayedQueue<number>(name);
    const handled: number[] = [];
    queue.subscribe((payload) => handled.push(payload));
    await delayed.offerMany([30, 10, 20, 0].map((delay) => ({ payload: delay, delay })));
    await eventually(() => handled.length === 4);
    expect(handled).toEqual([0, 10, 20, 30]);
  });

  test("runs one handler at a time by default", async () => {
    const handler = new Holding();
    await queue.putMany(upTo(3));
    queue.subscribe(handler.handle);
    await eventually(() => handler.started.length === 1);
    expect(await queue.size()).toBe(2);
    handler.release(0);
    await eventually(() => handler.started.length === 2);
    expect(handler.most).toBe(1);
    handler.open();
  });

  test("runs as many handlers at once as it may, and takes no message in advance", async () => {
    const handler = new Holding();
    await queue.putMany(upTo(10));
    queue.subscribe(handler.handle, { concurrency: 3 });
    await eventually(() => handler.started.length === 3);
    expect(await queue.readAll()).toEqual(upTo(10).slice(3));

    handler.release(1);
    await eventually(() => handler.started.length === 4);
    expect(handler.started).toEqual([0, 1, 2, 3]);
    expect(await queue.size()).toBe(6);

    handler.open();
    await eventually(() => handler.finished.length === 10);
    expect(handler.most).toBe(3);
    expect(await queue.size()).toBe(0);
  });

  test("beside another shares the messages, and each goes to one", async () => {
    const handled: number[] = [];
    const subscriptions = upTo(3).map(() =>
      queue.subscribe((payload) => handled.push(payload), { concurrency: 4 }),
    );
    await queue.putMany(upTo(300));
    await eventually(() => handled.length >= 300);
    await Promise.all(subscriptions.map((subscription) => subscription.close()));
    expect(handled.toSorted((a, b) => a - b)).toEqual(upTo(300));
  });

  test("uses the queue's codec, and passes null for null", async () => {
    const handled: unknown[] = [];
    const other = uniqueName("subscribe");
    line.getBlockingQueue(other, { codec: "json" }).subscribe((payload) => handled.push(payload));
    await redis.rpush(other, '{"a":1}', "null");
    await eventually(() => handled.length === 2);
    expect(handled).toEqual([{ a: 1 }, null]);
  });

  test.each([0, -1, 1.5, NaN, 10_001])("refuses a concurrency of %d", (concurrency) => {
    expect(() => queue.subscribe(() => {}, { concurrency })).toThrow(
      new RangeError(`concurrency must be a whole number between 1 and 10000, got ${concurrency}`),
    );
  });

  test.each([
    [undefined, "undefined"],
    [null, "null"],
    [{ handle() {} }, "object"],
  ])("refuses a handler that is not a function: %s", (handler, type) => {
    expect(() => queue.subscribe(handler as never)).toThrow(
      new TypeError(`handler must be a function, got ${type}`),
    );
  });
});

describe("closing a subscription", () => {
  test("waits for the running handlers", async () => {
    const handler = new Holding();
    await queue.putMany([0, 1]);
    const subscription = queue.subscribe(handler.handle, { concurrency: 2 });
    await eventually(() => handler.started.length === 2);

    let isClosed = false;
    const closing = subscription.close().then(() => (isClosed = true));
    handler.release(0);
    await eventually(() => handler.finished.length === 1);
    // A round trip to Redis later it still waits for the other handler.
    await redis.ping();
    expect(isClosed).toBe(false);
    handler.release(1);
    await closing;
    expect(handler.finished).toEqual([0, 1]);
  });

  test("takes no further message", async () => {
    const handled: number[] = [];
    const subscription = queue.subscribe((payload) => handled.push(payload), { concurrency: 5 });
    await queue.put(0);
    await eventually(() => handled.length === 1);
    await subscription.close();

    await queue.put(1);
    expect(await queue.take()).toBe(1);
    expect(handled).toEqual([0]);
  });

  test("may be done twice, also at the same time", async () => {
    const subscription = queue.subscribe(() => {});
    await Promise.all([subscription.close(), subscription.close()]);
    await subscription.close();
    await queue.put(1);
    expect(await queue.size()).toBe(1);
  });

  test("leaves the other subscriptions at work", async () => {
    const handled: number[] = [];
    const one = queue.subscribe(() => handled.push(-1));
    queue.subscribe((payload) => handled.push(payload));
    await one.close();
    await queue.putMany(upTo(5));
    await eventually(() => handled.length === 5);
    expect(handled).toEqual(upTo(5));
  });

  test("is done at the end of a block by await using", async () => {
    const handler = new Holding();
    handler.open();
    await queue.put(0);
    {
      await using subscription = queue.subscribe(handler.handle);
      expect(subscription).toBeInstanceOf(Subscription);
      await eventually(() => handler.started.length === 1);
    }
    await queue.put(1);
    expect(await queue.size()).toBe(1);
  });
});

describe("closing the client", () => {
  test("waits for the running handlers, which may still offer and put", async () => {
    const delayed: DelayedQueue<number> = line.getDelayedQueue(name);
    const next = line.getBlockingQueue(uniqueName("next"));
    const handler = new Holding();
    await queue.putMany([7, 8]);
    queue.subscribe(async (payload) => {
      await handler.handle(payload);
      await delayed.offer(payload * 10, 60_000);
      await next.put(payload);
    });
    await eventually(() => handler.started.length === 1);

    let isClosed = false;
    const closing = line.close().then(() => (isClosed = true));
    await redis.ping();
    expect(isClosed).toBe(false);
    handler.open();
    await closing;

    // The second message was left to others.
    expect(handler.started).toEqual([7]);
    expect(await redis.llen(name)).toBe(1);
    const later = newLine({ transfer: false });
    expect(await later.getDelayedQueue(name).insertionOrder.readAll()).toEqual([70]);
    expect(await later.getBlockingQueue(next.name).readAll()).toEqual([7]);
  });

  test("loses and duplicates none of many messages", async () => {
    const handled: number[] = [];
    await queue.putMany(upTo(500));
    queue.subscribe((payload) => handled.push(payload), { concurrency: 20 });
    await eventually(() => handled.length >= 20);
    await line.close();
    const left = await newLine({ transfer: false }).getBlockingQueue<number>(name).readAll();
    expect([...handled, ...left].toSorted((a, b) => a - b)).toEqual(upTo(500));
  });

  test("subscribing afterwards takes nothing", async () => {
    const closed = newLine({ transfer: false });
    const ready = closed.getBlockingQueue(name);
    await closed.close();
    await redis.rpush(name, "1");
    const handled: unknown[] = [];
    // It may throw, or return a subscription that has ended.
    try {
      await ready.subscribe((payload) => handled.push(payload)).close();
    } catch (error) {
      expect(error).toMatchObject({ code: "CLOSED" });
    }
    expect(handled).toEqual([]);
    expect(await redis.llen(name)).toBe(1);
  });
});

describe("a handler that fails", () => {
  const failures: [string, (reason: Error) => unknown][] = [
    [
      "by throwing",
      (reason) => {
        throw reason;
      },
    ],
    ["by rejecting", (reason) => Promise.reject(reason)],
  ];

  test.each(failures)(
    "%s is reported with its cause, and the next message follows",
    async (_, fail) => {
      const troubled = newLineThatMayFail();
      const reason = new Error("no such order");
      const handled: unknown[] = [];
      troubled.getBlockingQueue(name).subscribe((payload) => {
        return payload === "bad" ? fail(reason) : handled.push(payload);
      });
      await troubled.getBlockingQueue(name).putMany(["a", "bad", "b"]);
      await eventually(() => handled.length === 2);

      expect(handled).toEqual(["a", "b"]);
      await eventually(() => troubled.errors.length === 1);
      const [error] = troubled.errors;
      expect(error).toBeInstanceOf(HandlerError);
      expect(error).toMatchObject({
        code: "HANDLER",
        queue: name,
        message: `the handler of queue "${name}" failed`,
      });
      expect(error?.cause).toBe(reason);
      // At most once: its message is gone.
      expect(await redis.llen(name)).toBe(0);
    },
  );

  test.each([
    ["undefined", undefined],
    ["a text", "no order"],
  ])("with something that is not an Error is reported all the same: %s", async (_, reason) => {
    const troubled = newLineThatMayFail();
    troubled.getBlockingQueue(name).subscribe(() => {
      throw reason;
    });
    await queue.put(1);
    await eventually(() => troubled.errors.length === 1);
    expect(troubled.errors[0]).toBeInstanceOf(HandlerError);
    expect(troubled.errors[0]?.cause).toBe(reason);
  });

  test("during close does not make close fail", async () => {
    const troubled = newLineThatMayFail();
    let fail: (() => void) | undefined;
    const subscription = troubled
      .getBlockingQueue(name)
      .subscribe(() => new Promise((_, reject) => (fail = () => reject(new Error("late")))));
    await queue.put(1);
    await eventually(() => fail !== undefined);
    const closing = subscription.close();
    fail?.();
    await closing;
    await eventually(() => troubled.errors.length === 1);
  });
});

describe("with onError", () => {
  test("gets the failure and its payload, which go nowhere else, and the next message follows", async () => {
    const failures: unknown[] = [];
    const reason = new Error("no such order");
    queue.subscribe(
      (payload) => {
        if (payload === 1) throw reason;
        failures.push(`handled ${payload}`);
      },
      { onError: (error, payload) => failures.push([error, payload]) },
    );
    await queue.putMany([0, 1, 2]);
    await eventually(() => failures.length === 3);
    // The client is strict: an `error` event would fail the test.
    expect(failures).toEqual(["handled 0", [reason, 1], "handled 2"]);
  });

  test("belongs to the handler's turn: the next message and close wait for it", async () => {
    const delayed = line.getDelayedQueue<number>(name);
    const steps: string[] = [];
    let goOn: (() => void) | undefined;
    const subscription = queue.subscribe(() => Promise.reject(new Error("no")), {
      onError: async (_, payload) => {
        steps.push(`keeps ${payload}`);
        await new Promise<void>((resolve) => (goOn = resolve));
        await delayed.offer(payload, 60_000);
        steps.push(`kept ${payload}`);
      },
    });
    await queue.putMany([1, 2]);
    await eventually(() => goOn !== undefined);
    expect(subscription.running).toBe(1);
    expect(await queue.size()).toBe(1);

    const closing = line.close().then(() => steps.push("closed"));
    await redis.ping();
    expect(steps).toEqual(["keeps 1"]);
    goOn?.();
    await closing;
    expect(steps).toEqual(["keeps 1", "kept 1", "closed"]);
    const later = newLine({ transfer: false });
    expect(await later.getDelayedQueue(name).insertionOrder.readAll()).toEqual([1]);
  });

  test.each<[string, (reason: Error) => unknown]>([
    [
      "throws",
      (reason) => {
        throw reason;
      },
    ],
    ["rejects", (reason) => Promise.reject(reason)],
  ])(
    "and its own failure, %s, is reported without the payload, and ends nothing",
    async (_, fail) => {
      const troubled = newLineThatMayFail();
      const reason = new Error("the disk is full");
      const failed: number[] = [];
      troubled.getBlockingQueue<number>(name).subscribe(
        (payload) => {
          failed.push(payload);
          throw new Error("no");
        },
        { onError: () => fail(reason) },
      );
      await queue.putMany([4111, 4112]);
      await eventually(() => failed.length === 2);
      await eventually(() => troubled.errors.length === 2);
      for (const error of troubled.errors) {
        expect(error).toBeInstanceOf(HandlerError);
        expect(error.message).toBe(`the onError of queue "${name}" failed`);
        expect(error.cause).toBe(reason);
      }
    },
  );

  test.each([null, "log", {}])("that is not a function is refused: %j", (onError) => {
    expect(() => queue.subscribe(() => {}, { onError: onError as never })).toThrow(
      new TypeError(
        `onError must be a function, got ${onError === null ? "null" : typeof onError}`,
      ),
    );
  });
});
