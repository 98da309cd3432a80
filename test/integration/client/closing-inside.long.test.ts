/** Closing from inside a handler or the body of a loop, and what they may do while the client closes. */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { ClosedError, type Delayline } from "../../../src/index.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { uniqueName } from "../../helpers/redis.ts";

let name: string;
let line: TestLine;

beforeEach(() => {
  name = uniqueName("inside");
  line = newLineThatMayFail();
});

const AWAITED = expect.objectContaining({
  name: "TypeError",
  message:
    "close must not be awaited by a handler or the body of a loop, which it waits for; it goes on closing: call it there without await",
});

/** What a promise rejects with. */
async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

type Act = () => Promise<unknown>;

/** Runs `act` in the user's code that a message reaches. */
const CALLERS: Record<string, (act: Act) => Promise<AsyncDisposable | undefined>> = {
  "a handler": async (act) => {
    const queue = line.getBlockingQueue(name);
    await queue.put(1);
    return queue.subscribe(act);
  },
  "a handler, after a while": async (act) => {
    const queue = line.getBlockingQueue(name);
    await queue.put(1);
    return queue.subscribe(async () => {
      await sleep(5);
      await act();
    });
  },
  onError: async (act) => {
    const queue = line.getBlockingQueue(name);
    await queue.put(1);
    return queue.subscribe(() => Promise.reject(new Error("failed")), { onError: act });
  },
  "a handler of a reliable queue": async (act) => {
    const queue = line.getReliableQueue(name);
    await queue.offer(1, 0);
    return queue.subscribe(act);
  },
  "a handler in a sequence": async (act) => {
    const queue = line.getReliableQueue(name);
    await queue.offerMany([1, 2].map((payload) => ({ payload, delay: 0 })));
    let count = 0;
    return queue.subscribe(async () => (++count === 2 ? await act() : await sleep(20)), {
      concurrency: 2,
      orderBy: () => "one",
    });
  },
  "a handler of batches": async (act) => {
    const queue = line.getReliableQueue(name);
    await queue.offer(1, 0);
    return queue.subscribeBatch(act, { limit: 10 });
  },
  "a route": async (act) => {
    const queue = line.getReliableQueue(name);
    await queue.offer(1, 0, { key: "a:1" });
    return queue.route({ a: act });
  },
  "a handler of a partition": async (act) => {
    const queue = line.getReliableQueue(name, { exclusive: true, partitions: 1 });
    await queue.offer(1, 0);
    return queue.subscribe(act);
  },
  "the body of a loop": async (act) => {
    const queue = line.getBlockingQueue(name);
    await queue.put(1);
    void (async () => {
      for await (const _ of queue) await act();
    })();
    return undefined;
  },
  "the body of a loop over a reliable queue": async (act) => {
    const queue = line.getReliableQueue(name);
    await queue.offer(1, 0);
    void (async () => {
      for await (const delivery of queue) {
        await act();
        await delivery.ack();
      }
    })();
    return undefined;
  },
};

async function shutDown(): Promise<void> {
  await Promise.all([line.closeQueue(name), sleep(1)]);
}

describe.each(Object.keys(CALLERS))("in %s", (caller) => {
  const inside = CALLERS[caller] as (typeof CALLERS)[string];

  test("an awaited close rejects with the reason, and closes", async () => {
    let failure: unknown;
    await inside(async () => (failure = await failureOf(line.close())));
    await eventually(() => failure !== undefined);
    expect(failure).toEqual(AWAITED);
    await line.close();
  });

  test("so does one that another function awaits", async () => {
    let failure: unknown;
    await inside(async () => (failure = await failureOf(shutDown())));
    await eventually(() => failure !== undefined);
    expect(failure).toEqual(AWAITED);
  });

  test("a close that is not awaited works", async () => {
    let closing: Promise<void> | undefined;
    const ended = new Gate();
    await inside(async () => {
      closing ??= line.close().finally(() => ended.open());
      await sleep(50);
    });
    await ended.opened;
    await closing;
    expect(() => line.getDelayedQueue(name)).toThrow(ClosedError);
  });
});

test("a handler that awaits the close of its subscription, or of all, is told so", async () => {
  const failures: unknown[] = [];
  const queue = line.getBlockingQueue(name);
  await queue.putMany([1, 2]);
  const first = queue.subscribe(async () => failures.push(await failureOf(first.close())));
  const other = uniqueName("inside");
  await eventually(() => failures.length === 1);
  await line.getBlockingQueue(other).put(1);
  line.getBlockingQueue(other).subscribe(async () => {
    failures.push(await failureOf(line.closeSubscriptions()));
  });
  await eventually(() => failures.length === 2);
  expect(failures).toEqual([AWAITED, AWAITED]);
});

test("a handler may await the close of another client, and a loop one that has ended", async () => {
  const done = new Gate();
  const queue = line.getBlockingQueue(name);
  await queue.put(1);
  queue.subscribe(async () => {
    const other = newLine();
    await other.getDelayedQueue(name).size();
    await other.close();
    await sleep(1500);
    await failureOf(other.close());
    done.open();
  });
  await done.opened;
  expect(line.errors).toEqual([]);
});

test("close waits for a long handler that somebody else's close is waiting for", async () => {
  const queue = line.getBlockingQueue(name);
  const started = new Gate();
  let hasEnded = false;
  await queue.put(1);
  queue.subscribe(async () => {
    started.open();
    await sleep(2500);
    hasEnded = true;
  });
  await started.opened;
  await Promise.all([line.close(), line.close()]);
  expect(hasEnded).toBe(true);
});

async function checkDuringClose(
  open: (line: Delayline, other: string) => unknown,
  start: (act: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const [started, go] = [new Gate(), new Gate()];
  let outcome: unknown;
  await start(async () => {
    started.open();
    await go.opened;
    outcome = await failureOf((async () => await open(line, uniqueName("inside")))());
  });
  await started.opened;
  const closing = line.close();
  await sleep(20);
  go.open();
  await closing;
  expect(outcome).toBeUndefined();
  const late = await failureOf((async () => await open(line, uniqueName("inside")))());
  expect(late).toBeInstanceOf(ClosedError);
}

describe("while the client closes", () => {
  const OPENING: Record<string, (line: Delayline, other: string) => Promise<unknown> | object> = {
    getDelayedQueue: (client, other) => client.getDelayedQueue(other).offer("x", 60_000),
    getReliableQueue: (client, other) => client.getReliableQueue(other).offer("x", 60_000),
    getBlockingQueue: (client, other) => client.getBlockingQueue(other).put("x"),
    "getDelayedQueue with partitions": (client, other) =>
      client.getDelayedQueue(other, { partitions: 2 }).offer("x", 60_000),
    stats: (client, other) => client.stats(other),
    partitions: (client, other) => client.partitions(other),
    queues: (client) => client.queues().next(),
    serverTime: (client) => client.serverTime(),
  };

  test.each(Object.entries(OPENING))("a handler may call %s until it ends", async (_, open) => {
    await checkDuringClose(open, async (handler) => {
      const queue = line.getReliableQueue(name);
      await queue.offer(1, 0);
      queue.subscribe(handler);
    });
  });

  test.each(Object.entries(OPENING))(
    "the body of a loop may call %s until it ends",
    async (_call, open) => {
      await checkDuringClose(open, async (body) => {
        const queue = line.getBlockingQueue(name);
        await queue.put(1);
        void (async () => {
          for await (const _ of queue) await body();
        })();
      });
    },
  );

  test("the handler of a queue that is being closed may open others, until it ends", async () => {
    await checkDuringClose(OPENING["getDelayedQueue"] as never, async (handler) => {
      const queue = line.getBlockingQueue(name);
      await queue.put(1);
      const started = new Gate();
      queue.subscribe(async () => {
        started.open();
        await handler();
      });
      await started.opened;
      void line.closeQueue(name);
    });
  });
});
