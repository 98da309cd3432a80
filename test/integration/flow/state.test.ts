import { describe, expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { newClock, SECOND } from "../../helpers/test-clock.ts";

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

const ofLane = (lane: string, count: number) =>
  numbers(count).map((payload) => ({ payload, delay: 0, lane }));

describe.each(["plain", "reliable"] as const)("the state of a %s queue's flow", (kind) => {
  function open(name = uniqueName("flow-state"), transfer = true) {
    const line = newLine();
    return kind === "plain"
      ? line.getDelayedQueue<number>(name, { transfer })
      : line.getReliableQueue<number>(name, { transfer });
  }

  test("is empty without a flow", async () => {
    const queue = open(uniqueName("flow-state"), false);
    await queue.offer(1, 0);
    expect(await queue.flow.state()).toEqual({ waiting: 0, lanes: [] });
  });

  test("with a rate, tells how many wait", async () => {
    const clock = await newClock();
    const queue = open();
    await queue.flow.set({ rate: { limit: 10, per: SECOND, burst: 1 } });
    await queue.offerMany(numbers(6).map((payload) => ({ payload, delay: 0 })));
    await clock.advance(0);
    expect(await queue.flow.state()).toEqual({ waiting: 5, lanes: [] });
  });

  test("with lanes, counts those that wait, the noisiest lane first", async () => {
    const clock = await newClock();
    const queue = open();
    const rate = { limit: 1, per: 10 * SECOND, burst: 2 };
    await queue.flow.set({ lane: {}, lanes: { slow: { rate } }, ahead: 4 });
    await queue.offerMany([
      ...ofLane("loud", 40),
      ...ofLane("slow", 9),
      ...ofLane("quiet", 3),
      ...numbers(2).map((payload) => ({ payload, delay: 0 })),
    ]);
    await clock.advance(100);
    const state = await queue.flow.state();
    // Four are ready.
    expect(state.waiting).toBe(50);
    expect((await queue.stats()).waiting).toBe(50);
    expect(state.lanes.map(({ lane }) => lane).slice(0, 2)).toEqual(["loud", "slow"]);
    expect(new Set(state.lanes.map(({ lane }) => lane))).toContain("quiet");
    expect(state.lanes.reduce((sum, { waiting }) => sum + waiting, 0)).toBe(50);
    expect(await queue.flow.state({ limit: 1 })).toEqual({
      waiting: 50,
      lanes: [state.lanes[0]],
    });
    await queue.flow.clear();
    await clock.advance(5 * SECOND);
    expect(await queue.flow.state()).toEqual({ waiting: 0, lanes: [] });
  });

  test("says until when a lane rests", async () => {
    const clock = await newClock();
    const queue = open();
    const rate = { limit: 1, per: 10 * SECOND, burst: 2 };
    await queue.flow.set({ lane: { rate } });
    await queue.offerMany([...ofLane("a", 5), ...ofLane("b", 1)]);
    const { serverTime } = await queue.stats();
    await clock.advance(100);
    const { waiting, lanes } = await queue.flow.state();
    expect(waiting).toBe(3);
    expect(lanes).toEqual([{ lane: "a", waiting: 3, restsUntil: expect.any(Number) as number }]);
    const { restsUntil = 0 } = lanes[0] ?? {};
    expect(restsUntil).toBeGreaterThanOrEqual(Math.floor(serverTime) + 10 * SECOND);
    expect(restsUntil).toBeLessThanOrEqual(Math.ceil(serverTime) + 10 * SECOND + 100);
  });

  test("lists lanes that are held, also if nobody waits in them", async () => {
    const clock = await newClock();
    const queue = open();
    await queue.flow.set({ lane: {}, ahead: 1 });
    await queue.flow.hold("empty", 10 * SECOND);
    await queue.flow.hold("full", 5 * SECOND);
    await queue.offerMany([...ofLane("full", 3), ...ofLane("free", 1)]);
    const { serverTime } = await queue.stats();
    await clock.advance(100);
    const { waiting, lanes } = await queue.flow.state();
    expect(waiting).toBe(3);
    expect(lanes).toEqual([
      { lane: "full", waiting: 3, restsUntil: Math.ceil(serverTime + 5 * SECOND) },
      { lane: "empty", waiting: 0, restsUntil: Math.ceil(serverTime + 10 * SECOND) },
    ]);
    await clock.advance(6 * SECOND);
    const after = await queue.flow.state();
    expect(after.lanes.map(({ lane }) => lane)).toContain("empty");
    expect(after.lanes.find(({ lane }) => lane === "full")?.restsUntil).toBeUndefined();
    await clock.advance(5 * SECOND);
    expect((await queue.flow.state()).lanes.map(({ lane }) => lane)).not.toContain("empty");
  });

  test("counts more lanes than a script reads", async () => {
    const queue = open();
    await queue.flow.set({ lane: {}, ahead: 1 });
    await queue.offerMany(numbers(130).flatMap((i) => ofLane(`lane ${i}`, 1 + (i % 3))));
    await eventually(async () => (await queue.flow.state()).waiting === 258);
    const { lanes } = await queue.flow.state({ limit: 1000 });
    expect(new Set(lanes.map(({ lane }) => lane)).size).toBe(lanes.length);
    expect(lanes.length).toBeGreaterThanOrEqual(129);
    expect(lanes.map(({ waiting }) => waiting)).toEqual(
      lanes.map(({ waiting }) => waiting).toSorted((a, b) => b - a),
    );
    expect((await queue.flow.state()).lanes).toHaveLength(100);
  });

  test.each([
    [{ limit: 0 }, "limit must be a whole number between 1 and 1000, got 0"],
    [{ limit: 1001 }, "limit must be a whole number between 1 and 1000"],
    [{ lanes: 5 }, "state option must be one of limit, signal"],
  ])("%j is refused", async (options, message) => {
    await expect(open().flow.state(options as never)).rejects.toThrow(message);
  });
});

test("what is in hand of a lane is told where that is limited, the noisiest lane first", async () => {
  const line = newLine();
  const queue = line.getReliableQueue<number>(uniqueName("flow-state"));
  await queue.flow.set({ lane: { concurrency: 3 }, lanes: { free: { weight: 2 } } });
  await queue.offerMany([...ofLane("a", 10), ...ofLane("b", 2), ...ofLane("free", 5)]);
  await eventually(async () => (await queue.stats()).ready === 10);
  const byLane = async () =>
    Object.fromEntries((await queue.flow.state()).lanes.map(({ lane, ...one }) => [lane, one]));
  expect((await queue.flow.state()).lanes.map(({ lane }) => lane)).toEqual(["a", "b"]);
  expect(await byLane()).toMatchObject({
    a: { waiting: 7, running: 3 },
    b: { waiting: 0, running: 2 },
  });
  // Those that were taken are still in hand, those that are settled are not, even if their slots are not given back yet.
  const taken = new Map<string, number>();
  const deliveries = [];
  for (let i = 0; i < 10; i++) {
    const delivery = await queue.take();
    deliveries.push(delivery);
    taken.set(delivery.lane ?? "", (taken.get(delivery.lane ?? "") ?? 0) + 1);
  }
  expect(Object.fromEntries(taken)).toEqual({ a: 3, b: 2, free: 5 });
  expect(await byLane()).toMatchObject({ a: { running: 3 }, b: { running: 2 } });
  await deliveries.find(({ lane }) => lane === "b")?.ack();
  expect((await byLane())["b"]).toMatchObject({ waiting: 0, running: 1 });
  await deliveries.find(({ lane }) => lane === "a")?.ack();
  await eventually(async () => (await byLane())["a"]?.waiting === 6);
  expect((await byLane())["a"]).toMatchObject({ running: 3 });
  await queue.flow.set({ lane: {} });
  await eventually(async () => (await queue.flow.state()).waiting === 0);
  expect((await queue.flow.state()).lanes).toEqual([]);
});
