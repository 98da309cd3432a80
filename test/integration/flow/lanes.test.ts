import { describe, expect, test } from "vitest";
import type { NewMessage } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const MINUTE = 60_000;

/** `count` due messages of a lane. */
const inLane = (lane: string, count: number): NewMessage<string>[] =>
  Array.from({ length: count }, (_, i) => ({ payload: `${lane}${i}`, delay: 0, lane }));

/** Resolves once this many messages of the queue wait for their turn. */
const waiting = (queue: { stats(): Promise<{ waiting: number }> }, count: number) =>
  eventually(async () => (await queue.stats()).waiting === count);

/** Takes so many messages, one after the other. */
async function taking<T>(queue: { take(): Promise<T> }, count: number): Promise<T[]> {
  const taken: T[] = [];
  for (let i = 0; i < count; i++) taken.push(await queue.take());
  return taken;
}

describe("lanes", () => {
  test("a tenant with many messages does not hold up the others", async () => {
    const name = uniqueName();
    const line = newLine();
    const notices = line.getDelayedQueue<string>(name);
    await notices.flow.set({ lane: {}, ahead: 10 });
    await notices.offerMany(inLane("noisy", 500));
    await waiting(notices, 490);
    await notices.offerMany(inLane("quiet", 5));
    await waiting(notices, 495);
    const ready = line.getBlockingQueue<string>(name);
    const first = await taking(ready, 30);
    expect(first.filter((payload) => payload.startsWith("quiet"))).toHaveLength(5);
  });

  test("of what waits in a lane the higher priority comes first", async () => {
    const name = uniqueName();
    const line = newLine();
    const orders = line.getDelayedQueue<number>(name);
    await orders.flow.set({ order: "turns", ahead: 1 });
    await orders.offer(0, 0);
    await eventually(async () => (await orders.stats()).ready === 1);
    for (const priority of [1, -100, 5, 100, 3]) await orders.offer(priority, 0, { priority });
    await waiting(orders, 5);
    const ready = line.getBlockingQueue<number>(name);
    const taken = await taking(ready, 6);
    expect(taken).toEqual([0, 100, 5, 3, 1, -100]);
  });

  test("what waits is found, listed in order, cancelled and put off like a delayed message", async () => {
    const line = newLine();
    const orders = line.getDelayedQueue<string>(uniqueName());
    await orders.flow.set({ rate: { limit: 1, per: MINUTE, burst: 1 }, lane: {} });
    const due = Date.now() - 1000;
    const offer = (payload: string, i: number, lane: string) =>
      orders.offerAt(payload, due + i, { key: `order:${payload}`, lane, priority: i });
    await offer("first", 0, "a");
    await eventually(async () => (await orders.stats()).ready === 1);
    const second = await offer("second", 1, "b");
    await offer("third", 2, "a");
    await waiting(orders, 2);
    await orders.offer("later", MINUTE);
    expect(await orders.size()).toBe(3);
    const listed = await collect(orders.soonest());
    expect(listed.map(({ payload }) => payload)).toEqual(["second", "third", "later"]);
    expect(listed[0]).toMatchObject({ id: second.id, lane: "b", priority: 1 });
    expect(await orders.get("order:third")).toMatchObject({ payload: "third", lane: "a" });
    expect(await orders.has("order:second")).toBe(true);
    const found = await collect(orders.find({ prefix: "order:" }));
    expect(found.map(({ payload }) => payload).toSorted()).toEqual(["second", "third"]);
    expect(await orders.promote(second.id)).toEqual({ id: second.id, deadline: due + 1 });
    expect(await orders.cancel(second.id)).toBe(true);
    expect(await orders.cancel(second.id)).toBe(false);
    await orders.reschedule("order:third", MINUTE);
    expect(await orders.stats()).toMatchObject({ delayed: 2, waiting: 0, overdue: 0 });
    expect(await orders.clear()).toBe(2);
  });

  test("each lane keeps its rate, and the longest queue keeps nobody waiting", async () => {
    const name = uniqueName();
    const line = newLine();
    const notices = line.getDelayedQueue<string>(name);
    await notices.flow.set({
      lane: { rate: { limit: 1, per: MINUTE, burst: 2 } },
      lanes: { free: {} },
    });
    await notices.offerMany([...inLane("a", 5), ...inLane("b", 5), ...inLane("free", 20)]);
    const ready = line.getBlockingQueue<string>(name);
    const taken = await taking(ready, 24);
    const countOf = (lane: string) => taken.filter((payload) => payload.startsWith(lane)).length;
    expect([countOf("a"), countOf("b"), countOf("free")]).toEqual([2, 2, 20]);
    expect(await notices.stats()).toMatchObject({ ready: 0, waiting: 6 });
  });

  test("clear lets all go, and nothing of the lanes stays", async () => {
    const name = uniqueName();
    const line = newLine();
    const notices = line.getDelayedQueue<string>(name);
    await notices.flow.set({ lane: { rate: { limit: 1, per: MINUTE } } });
    await notices.offerMany([...inLane("a", 150), ...inLane("b", 150)]);
    await waiting(notices, 298);
    await notices.flow.clear();
    expect(await notices.flow.get()).toBeUndefined();
    await eventually(async () => (await notices.stats()).ready === 300);
    const { flow, room, turns, lanes, resting, lanePaces } = queueKeys(name);
    expect(await newRedis().exists(flow, room, turns, lanes, resting, lanePaces)).toBe(0);
  });

  test("a process that has not heard of the lanes learns of them, and one that stands by takes over", async () => {
    const name = uniqueName();
    const mover = newLine();
    const notices = mover.getDelayedQueue<string>(name);
    await notices.offer("first", 0);
    await eventually(async () => (await notices.stats()).ready === 1);
    const other = newLine().getDelayedQueue<string>(name);
    await other.flow.set({ rate: { limit: 20, per: 1000, burst: 1 }, lane: {} });
    await notices.offerMany(inLane("a", 10));
    await eventually(async () => (await other.stats()).waiting > 0);
    await mover.close();
    await eventually(async () => (await other.stats()).ready === 11);
  });

  test.each([
    [{ lane: { weight: 0 } }, "weight must be a number from 0.01 to 100, got 0"],
    [
      { lane: { concurrency: 1001 } },
      "concurrency must be a whole number between 1 and 1000, got 1001",
    ],
    [{ lane: { weigth: 1 } }, 'lane option must be one of rate, concurrency, weight, got "weigth"'],
    [{ lanes: { "": {} } }, "the name of a lane must have 1 to 100 bytes, got 0"],
    [{ lanes: [] }, "lanes must be an object"],
    [{ order: "fifo" }, 'order must be "turns", got "fifo"'],
    [{ rate: { limit: 1, per: 1000 }, ahead: 5 }, "ahead needs lanes"],
    [{ order: "turns", ahead: 0 }, "ahead must be a whole number between 1 and 1000000, got 0"],
  ])("%j is refused, and nothing is set", async (flow, message) => {
    const queue = newLine().getDelayedQueue(uniqueName());
    await expect(queue.flow.set(flow as never)).rejects.toThrow(message);
    expect(await queue.flow.get()).toBeUndefined();
  });

  test.each([
    [{ lane: "" }, "lane must have 1 to 100 bytes, got 0"],
    [{ lane: "x".repeat(101) }, "lane must have 1 to 100 bytes, got 101"],
    [{ lane: 5 }, "lane must be a string, got number"],
    [{ priority: 101 }, "priority must be a whole number between -100 and 100, got 101"],
    [{ priority: 0.5 }, "priority must be a whole number between -100 and 100, got 0.5"],
  ])("an offer with %j is refused", async (options, message) => {
    const queue = newLine().getDelayedQueue(uniqueName());
    await expect(queue.offer(1, 0, options as never)).rejects.toThrow(message);
  });

  test("a reliable queue becomes plain with what waits, if nothing limits what is in hand", async () => {
    const name = uniqueName();
    const reliable = newLine();
    const calls = reliable.getReliableQueue<string>(name);
    await calls.flow.set({ lane: {}, ahead: 2 });
    await calls.offerMany(inLane("a", 4).map((one, i) => ({ ...one, key: `key ${i}` })));
    await waiting(calls, 2);
    await calls.flow.hold("a", MINUTE);
    for (const delivery of await taking(calls, 2)) await delivery.nack({ delay: 1 });
    await waiting(calls, 4);
    await calls.flow.set({ lane: { concurrency: 2 } });
    await reliable.close();

    const line = newLine();
    const queue = line.getDelayedQueue<string>(name);
    await expect(queue.makePlain()).rejects.toThrow("set a flow without concurrency first");
    await queue.flow.set({ lane: { rate: { limit: 1000, per: 1000 } } });
    expect(await queue.makePlain()).toMatchObject({ isPlain: true });
    expect(await queue.stats()).toMatchObject({ kind: "plain", retries: 0 });
    expect(await queue.cancel("key 3")).toBe(true);
    await queue.flow.clear();
    const taken = await taking(line.getBlockingQueue<string>(name), 3);
    expect(taken.toSorted()).toEqual(["a0", "a1", "a2"]);
    expect(await queue.size()).toBe(0);
  });
});

describe("what is in hand", () => {
  test("of each lane and of the queue no more than they may, in all processes", async () => {
    const name = uniqueName();
    const running = new Map<string, number>();
    const most = new Map<string, number>();
    const handled: string[] = [];
    const count = (lane: string, by: number) => {
      running.set(lane, (running.get(lane) ?? 0) + by);
      most.set(lane, Math.max(most.get(lane) ?? 0, running.get(lane) ?? 0));
    };
    const lines = [newLine(), newLine()];
    const [first] = lines.map((line) => {
      const queue = line.getReliableQueue<string>(name);
      queue.subscribe(
        async (payload, { lane = "" }) => {
          for (const one of [lane, "all"]) count(one, 1);
          await new Promise((resolve) => setTimeout(resolve, 5));
          for (const one of [lane, "all"]) count(one, -1);
          handled.push(payload);
        },
        { concurrency: 20 },
      );
      return queue;
    });
    await first?.flow.set({
      concurrency: 5,
      lane: { concurrency: 2 },
      lanes: { one: { concurrency: 1 } },
    });
    const messages = ["a", "b", "c", "one"].flatMap((lane) => inLane(lane, 15));
    await first?.offerMany(messages);
    await eventually(() => handled.length === 60);
    expect(new Set(handled).size).toBe(60);
    expect(most.get("one")).toBe(1);
    for (const lane of ["a", "b", "c"]) expect(most.get(lane)).toBeLessThanOrEqual(2);
    expect(most.get("all")).toBeLessThanOrEqual(5);
  });

  test("a lane that is held rests, with all of its messages, and the others go on", async () => {
    const line = newLine();
    const calls = line.getReliableQueue<string>(uniqueName());
    await calls.flow.set({ lane: {}, ahead: 1 });
    await calls.offerMany([...inLane("busy", 3), ...inLane("other", 3)]);
    const first = await calls.take();
    expect(first.payload).toBe("busy0");
    await waiting(calls, 4);
    expect(await first.nack({ delay: MINUTE, holdLane: true })).toBe(true);
    for (const payload of ["other0", "other1", "other2"]) {
      const delivery = await calls.take();
      expect(delivery.payload).toBe(payload);
      await delivery.ack();
    }
    expect(await calls.stats()).toMatchObject({ waiting: 2, retries: 1, ready: 0 });
    await calls.flow.clear();
    expect((await calls.take()).payload).toBe("busy1");
  });

  test("holdLane needs a delay, and in a queue without lanes it only delays", async () => {
    const line = newLine();
    const calls = line.getReliableQueue<string>(uniqueName());
    await calls.offer("x", 0, { lane: "a" });
    const delivery = await calls.take();
    await expect(delivery.nack({ holdLane: true })).rejects.toThrow("holdLane needs a delay");
    expect(delivery.lane).toBe("a");
    expect(await delivery.nack({ delay: 10, holdLane: true })).toBe(true);
    expect((await calls.take()).attempt).toBe(2);
  });

  test("hold refuses a queue without lanes", async () => {
    const { flow } = newLine().getDelayedQueue(uniqueName());
    await expect(flow.hold("a", 1000)).rejects.toThrow("has no lanes to hold");
    await expect(flow.hold("", 1000)).rejects.toThrow("lane must have 1 to 100 bytes");
    await expect(flow.hold("a", -1)).rejects.toThrow(RangeError);
  });
});
