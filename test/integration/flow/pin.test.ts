import { describe, expect, test } from "vitest";
import type { NewMessage } from "../../../src/index.ts";
import { partsOf } from "../../../src/handles/queue-handle.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { newClock, SECOND } from "../../helpers/test-clock.ts";

const inLane = (lane: string, count: number, delay = 0): NewMessage<string>[] =>
  Array.from({ length: count }, () => ({ payload: lane, delay, lane }));

async function open() {
  const clock = await newClock();
  const name = uniqueName("pin");
  const line = newLine();
  const queue = line.getDelayedQueue<string>(name);
  const taken: Record<string, number> = {};
  line.getBlockingQueue<string>(name).subscribe((lane) => {
    taken[lane] = (taken[lane] ?? 0) + 1;
  });
  const lanes = async () =>
    Object.fromEntries((await queue.flow.state()).lanes.map(({ lane, ...one }) => [lane, one]));
  return { clock, name, line, queue, taken, lanes };
}

describe("a pinned lane", () => {
  test("that is paused has no message ready, whatever is set, until it is unpinned", async () => {
    const { clock, queue, taken, lanes } = await open();
    const flow = { lane: {} };
    await queue.flow.set(flow);
    await queue.flow.pin("a", { paused: true });
    await queue.offerMany([...inLane("a", 3), ...inLane("b", 3)]);
    await clock.advance(SECOND);
    expect(taken).toEqual({ b: 3 });
    await queue.flow.set({
      lane: { rate: { limit: 100, per: SECOND } },
      lanes: { a: { weight: 2 } },
    });
    // Longer than until holds are looked through.
    await clock.advance(5 * 3600 * SECOND);
    expect(taken).toEqual({ b: 3 });
    expect(await lanes()).toMatchObject({
      a: { waiting: 3, restsUntil: undefined, pinned: { paused: true } },
    });
    await queue.flow.unpin("a");
    await clock.advance(SECOND);
    expect(taken).toEqual({ a: 3, b: 3 });
    expect(await lanes()).toEqual({});
    expect(await queue.flow.get()).toMatchObject({ lanes: { a: { weight: 2 } } });
  });

  test("that is paused while messages wait in it rests, and the others go on", async () => {
    const { clock, queue, taken } = await open();
    const rate = { limit: 10, per: SECOND, burst: 1 };
    await queue.flow.set({ lane: { rate } });
    await queue.offerMany([...inLane("a", 20), ...inLane("b", 20)]);
    await clock.advance(SECOND);
    await queue.flow.pin("a", { paused: true });
    const before = taken["a"] ?? 0;
    expect(before).toBeGreaterThan(5);
    await clock.advance(5 * SECOND);
    expect(taken).toEqual({ a: before, b: 20 });
    await queue.flow.unpin("a");
    await clock.advance(5 * SECOND);
    expect(taken).toEqual({ a: 20, b: 20 });
  });

  test("keeps its limit against what is set, and has that of the flow again", async () => {
    const { clock, queue, taken, lanes } = await open();
    await queue.flow.set({ lane: {} });
    const pinned = { rate: { limit: 2, per: SECOND, burst: 1 } };
    await queue.flow.pin("a", pinned);
    await queue.flow.set({ lane: {}, lanes: { a: { rate: { limit: 900, per: SECOND } } } });
    expect(await lanes()).toMatchObject({ a: { waiting: 0, pinned } });
    await queue.offerMany([...inLane("a", 30), ...inLane("b", 30)]);
    const { spans } = await queue.flow.preview({ step: SECOND, count: 3 });
    await clock.advance(3010);
    expect(taken).toEqual({ a: 7, b: 30 });
    expect(spans.at(-1)?.waiting).toBeLessThanOrEqual(24);
    expect(spans.at(-1)?.waiting).toBeGreaterThanOrEqual(23);
    await queue.flow.unpin("a");
    await clock.advance(SECOND);
    expect(taken).toEqual({ a: 30, b: 30 });
  });

  test("is pinned no more after clear, and in a flow without lanes nothing can be", async () => {
    const { clock, queue, taken, lanes } = await open();
    await queue.flow.set({ lane: {} });
    await queue.flow.pin("a", { paused: true });
    await queue.offerMany(inLane("a", 3));
    await clock.advance(SECOND);
    expect(taken).toEqual({});
    await queue.flow.clear();
    await clock.advance(SECOND);
    expect(taken).toEqual({ a: 3 });
    await expect(queue.flow.pin("a", { paused: true })).rejects.toThrow(
      "the flow of the queue has no lanes to pin",
    );
    await queue.flow.set({ rate: { limit: 5, per: SECOND } });
    await expect(queue.flow.pin("a", {})).rejects.toThrow(TypeError);
    await queue.flow.set({ lane: {} });
    expect(await lanes()).toEqual({});
    await queue.flow.unpin("a");
  });

  test("that is held as well is held no more when its pause ends; others' holds stay", async () => {
    const { clock, queue, taken, lanes } = await open();
    await queue.flow.set({ lane: {} });
    await queue.flow.hold("b", 20 * SECOND);
    await queue.flow.pin("a", { paused: true });
    await queue.flow.hold("a", 10 * SECOND);
    await queue.offerMany([...inLane("a", 1), ...inLane("b", 1), ...inLane("c", 1)]);
    await clock.advance(SECOND);
    expect(taken).toEqual({ c: 1 });
    await queue.flow.unpin("a");
    await clock.advance(SECOND);
    expect(taken).toEqual({ a: 1, c: 1 });
    await clock.advance(20 * SECOND);
    expect(taken).toEqual({ a: 1, b: 1, c: 1 });
    expect(await lanes()).toEqual({});
  });

  test("is foreseen", async () => {
    const { queue } = await open();
    await queue.flow.set({ lane: {} });
    await queue.flow.pin("a", { paused: true });
    await queue.offerMany([...inLane("a", 5, 1500), ...inLane("b", 4, 1500)]);
    const { spans } = await queue.flow.preview({ step: SECOND, count: 3 });
    expect(spans.map(({ due, ready, waiting }) => [due, ready, waiting])).toEqual([
      [0, 0, 0],
      [9, 4, 5],
      [0, 0, 5],
    ]);
  });

  test("is in the log", async () => {
    const { queue } = await open();
    await queue.flow.set({ lane: {} });
    await queue.flow.pin("a", { paused: true });
    await queue.flow.unpin("a");
    await queue.flow.unpin("a");
    const entries = await partsOf(queue).activity.read();
    expect(entries.map(({ what, detail }) => [what, detail]).slice(0, 2)).toEqual([
      ["lane unpinned", "a"],
      ["lane pinned", 'a: {"paused":true}'],
    ]);
    expect(entries).toHaveLength(3);
  });

  test("with a slot limit holds back what is in hand", async () => {
    const queue = newLine().getReliableQueue<string>(uniqueName("pin"));
    await queue.flow.set({ lane: {} });
    await queue.flow.pin("a", { concurrency: 2 });
    await queue.offerMany([...inLane("a", 5), ...inLane("b", 5)]);
    await eventually(async () => (await queue.stats()).ready === 7);
    expect((await queue.flow.state()).lanes).toEqual([
      {
        lane: "a",
        waiting: 3,
        running: 2,
        restsUntil: expect.anything() as number,
        pinned: { concurrency: 2 },
      },
    ]);
    await queue.flow.unpin("a");
    await eventually(async () => (await queue.stats()).ready === 10);
  });

  test.each([
    ["", {}, "lane must have 1 to 100 bytes"],
    ["a", { paused: false }, "paused must be true"],
    ["a", { paused: true, weight: 2 }, "pin option must be"],
    ["a", { weight: 1000 }, "weight must be a number"],
    ["a", { pace: 5 }, "lane option must be one of"],
  ])("of %j as %j is refused", async (lane, pin, message) => {
    const queue = newLine().getDelayedQueue(uniqueName("pin"), { transfer: false });
    await queue.flow.set({ lane: {} });
    await expect(queue.flow.pin(lane, pin as never)).rejects.toThrow(message);
  });
});
