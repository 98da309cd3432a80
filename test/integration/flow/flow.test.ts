import { describe, expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, i) => from + i);

const keyed = (payload: number) => ({ payload, delay: 0, key: `number ${payload}` });

const rate = (limit: number, per = SECOND, burst = 1) => ({ rate: { limit, per, burst } });

/** Sets the rate without a wake-up. */
const setQuietly = (name: string) =>
  newRedis().hset(queueKeys(name).flow, {
    kind: "paced",
    step: 60_000_000,
    burst: 1,
    arrival: 0,
    declared: JSON.stringify(rate(1, MINUTE)),
  });

describe("a rate", () => {
  test("is the same for every handle and process, until it is cleared", async () => {
    const name = uniqueName("flow");
    const [mine, other] = [newLine(), newLine()];
    const orders = mine.getReliableQueue(name);
    const ready = other.getReliableQueue(name, { transfer: false });
    expect(await orders.flow.get()).toBeUndefined();
    await orders.flow.set({ rate: { limit: 5, per: 1000 } });
    expect(await ready.flow.get()).toEqual({ rate: { limit: 5, per: 1000 } });
    await ready.flow.set(rate(7));
    expect(await orders.flow.get()).toEqual(rate(7));
    await ready.flow.clear();
    expect(await orders.flow.get()).toBeUndefined();
    expect(await newRedis().exists(queueKeys(name).flow)).toBe(0);
  });

  test.each([
    ["no options", undefined, "flow options must be an object"],
    [
      "an unknown option",
      { rates: {} },
      'flow option must be one of rate, concurrency, lane, lanes, order, ahead, got "rates"',
    ],
    [
      "no rate",
      {},
      'a flow needs a rate, a concurrency, a lane or order: "turns"; to end a limit, call clear()',
    ],
    ["no limit", { rate: { per: 1000 } }, "limit must be a whole number, got undefined"],
    ["a limit of 0", { rate: { limit: 0, per: 1000 } }, "limit must be a whole number between"],
    ["a part of a message", { rate: { limit: 0.5, per: 1000 } }, "limit must be a whole number"],
    ["a time of two days", { rate: { limit: 1, per: 2 * 86_400_000 } }, "per must be a whole"],
    ["a burst of 0", { rate: { limit: 1, per: 1000, burst: 0 } }, "burst must be a whole number"],
    ["an unknown rate", { rate: { max: 1, duration: 5 } }, "rate option must be one of"],
  ])("%s is refused, and nothing is set", async (_, flow, message) => {
    const queue = newLine().getDelayedQueue(uniqueName("flow"));
    const set = queue.flow.set(flow as never);
    await expect(set).rejects.toThrow(message);
    expect(await queue.flow.get()).toBeUndefined();
  });
});

describe.each(["plain", "reliable"] as const)("messages of a %s queue with a rate", (kind) => {
  /** A queue by a clock that stands still; `taken` are the messages that a handler got. */
  async function open(partitions?: number) {
    const clock = await newClock({ now: Date.parse("2026-03-01T00:00:00Z") });
    const line = newLine();
    const name = uniqueName("flow");
    const options = partitions === undefined ? {} : { partitions };
    const taken: number[] = [];
    const queue =
      kind === "plain"
        ? line.getDelayedQueue<number>(name, options)
        : line.getReliableQueue<number>(name, options);
    const consume = () =>
      kind === "plain"
        ? line.getBlockingQueue<number>(name, options).subscribe((one) => void taken.push(one))
        : line.getReliableQueue<number>(name, options).subscribe((one) => void taken.push(one));
    return { clock, line, name, queue, taken, consume };
  }

  test("become ready one by one, in order, and no faster", async () => {
    const { clock, queue, taken, consume } = await open();
    await queue.flow.set(rate(10));
    await queue.offerMany(numbers(150).map((payload) => ({ payload, delay: 0 })));
    consume();
    await clock.advance(0);
    expect(taken).toEqual(numbers(1));
    await clock.advance(SECOND);
    expect(taken).toEqual(numbers(11));
    await clock.advance(SECOND);
    expect(taken).toEqual(numbers(21));
    await clock.advance(10 * SECOND);
    expect(taken).toEqual(numbers(121));
    await clock.advance(MINUTE);
    expect(taken).toEqual(numbers(150));
  });

  test("can be cancelled, found and rescheduled while they wait; what waits is not overdue", async () => {
    const { clock, queue, taken, consume } = await open();
    await queue.flow.set(rate(1));
    await queue.offerMany(numbers(6).map(keyed));
    consume();
    await clock.advance(100);
    expect(taken).toEqual([0]);
    expect(await queue.stats()).toMatchObject({ delayed: 5, waiting: 5, overdue: 0 });
    expect(await queue.cancel("number 1")).toBe(true);
    expect(await queue.cancel("number 0")).toBe(false);
    expect(await queue.has("number 2")).toBe(true);
    await queue.reschedule("number 2", 10 * SECOND);
    await clock.advance(3 * SECOND);
    expect(taken).toEqual([0, 3, 4, 5]);
    expect(await queue.stats()).toMatchObject({ delayed: 1, waiting: 0 });
    await clock.advance(10 * SECOND);
    expect(taken).toEqual([0, 3, 4, 5, 2]);
  });

  test("are ready at once, in order, when the rate is cleared; and another rate counts from now on", async () => {
    const { clock, queue, taken, consume } = await open();
    await queue.flow.set(rate(1, MINUTE));
    await queue.offerMany(numbers(40).map((payload) => ({ payload, delay: 0 })));
    consume();
    await clock.advance(1);
    expect(taken).toEqual([0]);
    await queue.flow.set(rate(10));
    await clock.advance(SECOND);
    expect(taken).toHaveLength(11);
    await queue.flow.clear();
    await clock.advance(1);
    expect(taken).toEqual(numbers(40));
  });

  test("wait for their turn, which is no lateness of the system", async () => {
    const { clock, queue, consume } = await open();
    await queue.flow.set(rate(1));
    await queue.offerMany(numbers(5).map((payload) => ({ payload, delay: 0 })));
    consume();
    await clock.advance(5 * SECOND);
    const { waited, systemLateness } = queue.counters;
    expect(waited).toMatchObject({ count: 5, sum: 10_000 });
    expect(systemLateness.sum).toBeLessThan(5);
  });

  test("have a share of the rate in each partition, and all of it together", async () => {
    const { clock, queue, taken, consume } = await open(4);
    await queue.flow.set(rate(40, SECOND, 4));
    await queue.offerMany(numbers(400).map((payload) => ({ payload, delay: 0 })));
    consume();
    await clock.advance(0);
    expect(taken).toHaveLength(4);
    await clock.advance(2 * SECOND);
    expect(taken).toHaveLength(84);
  });

  test("keep the rate when the number of partitions changes", async () => {
    const { clock, line, name, queue, taken, consume } = await open(2);
    await queue.flow.set(rate(20, SECOND, 2));
    await queue.offerMany(numbers(200).map((payload) => ({ payload, delay: 0 })));
    consume();
    await clock.advance(SECOND);
    expect(taken).toHaveLength(22);
    const before = taken.length;
    await line.setPartitions(name, 5);
    await clock.advance(4 * SECOND);
    expect(await queue.flow.get()).toEqual(rate(20, SECOND, 2));
    // Two seconds may pass with shares of both numbers; more than the rate never goes.
    expect(taken.length - before).toBeGreaterThan(50);
    expect(taken.length - before).toBeLessThanOrEqual(82 + 5);
    await line.setPartitions(name, 1);
    await clock.advance(MINUTE);
    expect(taken.toSorted((a, b) => a - b)).toEqual(numbers(200));
  });

  test("a preview of later begins with what waits then, and has saved nothing", async () => {
    const { queue } = await open();
    const now = Date.parse("2026-03-01T00:00:00Z");
    await queue.offerMany(numbers(100).map((payload) => ({ payload, delay: SECOND })));
    const flow = { rate: { limit: 10, per: SECOND, burst: 20 } };
    const from = now + 3 * SECOND;
    const { spans } = await queue.flow.preview({ flow, from, step: SECOND, count: 3 });
    // 20 at once, and ten a second since.
    const [first] = spans;
    expect(first?.due).toBeGreaterThanOrEqual(58);
    expect(first?.due).toBeLessThanOrEqual(62);
    for (const { ready } of spans) expect(Math.abs(ready - 10)).toBeLessThanOrEqual(1);
  });

  test("a preview says what then happens", async () => {
    const { clock, queue, taken, consume } = await open();
    const due = (second: number, count: number) =>
      numbers(count, second * 1000).map((payload) => ({ payload, delay: second * SECOND }));
    await queue.offerMany([...due(2, 100), ...due(3, 10), ...due(9, 50)]);
    const flow = { rate: { limit: 20, per: SECOND, burst: 2 } };
    const preview = await queue.flow.preview({ flow, step: SECOND, count: 15 });
    expect(await queue.flow.get()).toBeUndefined();
    await queue.flow.set(flow);
    consume();
    let before = 0;
    const ready: number[] = [];
    for (let i = 0; i < 15; i++) {
      await clock.advance(SECOND);
      ready.push(taken.length - before);
      before = taken.length;
    }
    for (const [i, span] of preview.spans.entries()) {
      expect(Math.abs(span.ready - (ready[i] ?? 0))).toBeLessThanOrEqual(2);
    }
    expect(preview.spans.map(({ due: count }) => count)).toEqual(
      numbers(15).map((i) => ({ 2: 100, 3: 10, 9: 50 })[i] ?? 0),
    );
    const now = Date.parse("2026-03-01T00:00:00Z");
    expect(preview.endsAt).toBeGreaterThan(now + 11_300);
    expect(preview.endsAt).toBeLessThan(now + 11_600);
  });
});

describe("a process that has not heard of a rate", () => {
  test("obeys it with its next move, where the queue is plain", async () => {
    const name = uniqueName("flow");
    const line = newLine();
    const queue = line.getDelayedQueue(name);
    const taken: unknown[] = [];
    line.getBlockingQueue(name).subscribe((one) => void taken.push(one));
    await queue.offer("first", 0);
    await eventually(() => taken.length === 1);
    await setQuietly(name);
    await queue.offerMany(numbers(3).map((payload) => ({ payload, delay: 0 })));
    await eventually(async () => (await queue.stats()).waiting === 2);
    expect(taken).toEqual(["first", 0]);
  });

  test("obeys it when it next claims that it moves, where the queue is reliable", async () => {
    const name = uniqueName("flow");
    const queue = newLine().getReliableQueue(name);
    const taken: unknown[] = [];
    queue.subscribe((one) => void taken.push(one));
    await queue.offer("first", 0);
    await eventually(() => taken.length === 1);
    await setQuietly(name);
    await eventually(async () => {
      await queue.offer("another", 0);
      return (await queue.stats()).waiting > 2;
    });
  });
});
