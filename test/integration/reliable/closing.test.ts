import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import {
  ClosedError,
  LeftRunningError,
  type CloseOptions,
  type Delivery,
  type ReliableQueue,
} from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

let name: string;
let line: TestLine;
let queue: ReliableQueue<string>;
/** A queue of another client. A message that arrives here soon did not wait for the end of a lease of 30 s. */
let other: ReliableQueue<string>;

beforeEach(() => {
  name = uniqueName("closing");
  line = newLine();
  queue = line.getReliableQueue(name);
  other = newLine().getReliableQueue(name);
});

/** For a test in which `close` reports handlers that still run. */
function leaveRunning(): void {
  line = newLineThatMayFail();
  queue = line.getReliableQueue(name);
}

/** The attempts of the messages that the other client gets at once, by payload. */
async function takenByOther(count: number): Promise<Record<string, number>> {
  const taken: Delivery<string>[] = [];
  while (taken.length < count) {
    const some = await other.takeMany({ limit: count, timeout: 3_000 });
    if (some.length === 0) break;
    taken.push(...some);
  }
  for (const delivery of taken) await delivery.ack();
  expect(await other.poll()).toBeUndefined();
  return Object.fromEntries(taken.map(({ payload, attempt }) => [payload, attempt]));
}

async function offer(...payloads: string[]): Promise<void> {
  await queue.offerMany(payloads.map((payload) => ({ payload, delay: 0 })));
}

describe.each(["subscription", "client"])("close() of the %s", (what) => {
  const closeAll = (subscription: AsyncDisposable & { close: TestLine["close"] }) =>
    what === "client"
      ? (options?: CloseOptions) => line.close(options)
      : (options?: CloseOptions) => subscription.close(options);

  test("waits for the handlers and their acks, and takes no more", async () => {
    const gate = new Gate();
    const started: string[] = [];
    const signals: AbortSignal[] = [];
    const subscription = queue.subscribe(
      async (payload, { signal }) => {
        started.push(payload);
        signals.push(signal);
        await gate.opened;
      },
      { concurrency: 2 },
    );
    await offer("a", "b", "c", "d");
    await eventually(() => started.length === 2);
    const closing = closeAll(subscription)();
    await eventually(() => signals.every(({ aborted }) => aborted));
    gate.open();
    await closing;
    expect(line.errors).toEqual([]);
    expect(started).toEqual(["a", "b"]);
    expect(await takenByOther(2)).toEqual({ c: 1, d: 1 });
    expect(await newRedis().xlen(queueKeys(name).stream)).toBe(0);
  });

  test("with a timeout: held messages go to others at once, and a delivery that had begun counts", async () => {
    leaveRunning();
    const gate = new Gate();
    const started: string[] = [];
    const outcomes: boolean[] = [];
    const subscription = queue.subscribe(
      async (payload, delivery) => {
        started.push(payload);
        await gate.opened;
        outcomes.push(await delivery.ack());
      },
      // The third waits for the second, and does not begin.
      { concurrency: 3, orderBy: (payload) => payload.slice(0, 1) },
    );
    await offer("a1", "b1", "b2");
    await eventually(() => started.length === 2);
    const { stream } = queueKeys(name);
    const redis = newRedis();
    await eventually(async () => ((await redis.xpending(stream, "default")) as [number])[0] === 3);
    await closeAll(subscription)({ handlerTimeout: 10 });
    expect(await takenByOther(3)).toEqual({ a1: 2, b1: 2, b2: 1 });
    expect(line.errors).toEqual([expect.any(LeftRunningError)]);
    gate.open();
    await eventually(() => outcomes.length === 2);
    expect(outcomes).toEqual([false, false]);
    // The waiting one does not begin after that.
    await subscription.close();
    expect(started).toEqual(["a1", "b1"]);
  });

  test("a handler that throws the signal's reason was cut short: its attempt does not count", async () => {
    const started: string[] = [];
    const subscription = queue.subscribe(
      async (payload, { signal }) => {
        started.push(payload);
        // The platform's own error has the reason as its cause.
        if (payload === "slept") await sleep(60_000, undefined, { signal });
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        signal.throwIfAborted();
      },
      { concurrency: 2 },
    );
    await offer("slept", "waited");
    await eventually(() => started.length === 2);
    await closeAll(subscription)();
    expect(await takenByOther(2)).toEqual({ slept: 1, waited: 1 });
    expect(line.errors).toEqual([]);
  });

  test("with a timeout: messages that a batch has not settled go to others", async () => {
    leaveRunning();
    const gate = new Gate();
    let first: readonly Delivery<string>[] = [];
    const subscription = queue.subscribeBatch(
      async (deliveries) => {
        first = deliveries;
        await first[0]?.ack();
        await gate.opened;
      },
      { limit: 3 },
    );
    await offer("a", "b", "c");
    await eventually(() => first.length > 0);
    await closeAll(subscription)({ handlerTimeout: 10 });
    const attempts = await takenByOther(2);
    for (const { payload, signal } of first.slice(1)) {
      expect(attempts[payload]).toBe(2);
      expect(signal.aborted).toBe(true);
    }
    expect(attempts).not.toHaveProperty("a");
    gate.open();
  });
});

test("close() of the client gives back deliveries taken by hand, and aborts their signals", async () => {
  await offer("a", "b");
  const [a, b] = (await queue.takeMany({ limit: 2 })) as [Delivery<string>, Delivery<string>];
  const acking = a.ack();
  await line.close();
  expect(await acking).toBe(true);
  expect(b.signal.aborted).toBe(true);
  expect(await b.ack()).toBe(false);
  expect(await takenByOther(1)).toEqual({ b: 2 });
  // The consumer has left the group.
  const consumers = (await newRedis().xinfo("CONSUMERS", queueKeys(name).stream, "default")) as [];
  expect(consumers.length).toBe(1);
});

test("close() makes a delivery taken by hand a dead letter if it was the last attempt", async () => {
  const once = line.getReliableQueue<string>(name, { group: "once", maxAttempts: 1 });
  await once.offer("x", 0);
  const delivery = await once.take();
  await line.close();
  expect(delivery.signal.aborted).toBe(true);
  expect(await other.deadLetters.size()).toBe(1);
});

test("close() waits for the body of a for await loop, whose ack counts, and ends the loop", async () => {
  const gate = new Gate();
  const outcomes: boolean[] = [];
  let hasBegun = false;
  const looping = (async () => {
    for await (const delivery of queue) {
      hasBegun = true;
      await gate.opened;
      outcomes.push(await delivery.ack());
    }
  })();
  await offer("a", "b");
  // Not earlier: a message that Redis has handed out may still be on its way.
  await eventually(() => hasBegun);
  let isClosed = false;
  const closing = line.close().then(() => (isClosed = true));
  expect(await other.poll(50)).toMatchObject({ payload: "b", attempt: 1 });
  expect(isClosed).toBe(false);
  gate.open();
  await closing;
  await looping;
  expect(outcomes).toEqual([true]);
});

test("close() ends waits and later calls, and a message that arrives at that moment is not lost", async () => {
  const takes = Array.from({ length: 20 }, () => queue.take());
  const outcomes = Promise.allSettled(takes);
  await other.offer("x", 0);
  await line.close();
  const fulfilled: Delivery<string>[] = [];
  for (const outcome of await outcomes) {
    if (outcome.status === "fulfilled") fulfilled.push(outcome.value);
    else expect(outcome.reason).toBeInstanceOf(ClosedError);
  }
  // The waiting call got it before the client closed.
  expect(await takenByOther(1)).toEqual({ x: fulfilled.length + 1 });
  await expect(queue.take()).rejects.toThrow(ClosedError);
  await expect(queue.poll()).rejects.toThrow(ClosedError);
  await expect(queue.takeMany({ limit: 1 })).rejects.toThrow(ClosedError);
  expect(() => queue.subscribe(() => {})).toThrow(ClosedError);
  expect(() => queue.subscribeBatch(() => {}, { limit: 1 })).toThrow(ClosedError);
  expect(() => queue.route({ a: () => {} })).toThrow(ClosedError);
  await expect(queue.offer("y", 0)).rejects.toThrow(ClosedError);
  await expect(queue.deadLetters.size()).rejects.toThrow(ClosedError);
  await expect(queue.size()).rejects.toThrow(ClosedError);
  for await (const delivery of queue) throw new Error(`took ${delivery.payload}`);
});

test("closing a subscription leaves the others of its client running", async () => {
  const seen: string[] = [];
  const first = queue.subscribe((payload) => seen.push(`first ${payload}`));
  await first.close();
  await first.close();
  queue.subscribe((payload) => seen.push(`second ${payload}`));
  await offer("a");
  await eventually(() => seen.length === 1);
  expect(seen).toEqual(["second a"]);
});

test("an aborted wait loses nothing, and its attempt does not count", async () => {
  for (let i = 0; i < 30; i++) {
    const controller = new AbortController();
    const taking = queue.take({ signal: controller.signal }).catch(() => undefined);
    const offering = other.offer(`${i}`, 0);
    await sleep(Math.random() * 4);
    controller.abort();
    await offering;
    const delivery = (await taking) ?? (await other.poll(3_000));
    expect(delivery).toMatchObject({ payload: `${i}`, attempt: 1 });
    expect(await delivery?.ack()).toBe(true);
  }
});
