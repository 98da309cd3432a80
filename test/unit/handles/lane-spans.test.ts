import { expect, test } from "vitest";
import { playLanes } from "../../../src/handles/lane-spans.ts";
import type { FlowOptions } from "../../../src/queue/flow.ts";
import type { LanesAhead } from "../../../src/queue/lanes.ts";

const SECOND = 1000;

/** A second's spans of a play that begins at 0. */
function play(flow: FlowOptions, ahead: Partial<LanesAhead>, count = 5, shares = 1) {
  const nothing = { used: { now: 0, queue: 0, lanes: [] }, waiting: [], holds: new Map(), due: [] };
  const all = { ...nothing, seenUntil: undefined, ...ahead };
  return playLanes(all, flow, { from: 0, step: SECOND, count }, shares);
}

const waiting = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).map(([lane, count]) => ({ lane, waiting: count, restsUntil: undefined }));

const rate = (limit: number, burst = 1) => ({ limit, per: SECOND, burst });

test("each lane keeps its rate, and its burst", async () => {
  const flow = { lane: { rate: rate(10) }, lanes: { b: { rate: rate(20, 5) } } };
  const {
    ready,
    before,
    waiting: left,
    lastAt,
  } = await play(flow, { waiting: waiting({ a: 25, b: 100 }) });
  expect(before).toBe(125);
  expect(ready).toEqual([34, 30, 25, 20, 16].map(() => expect.any(Number)));
  expect(ready[0]).toBe(10 + 5 + 19);
  expect(ready[1]).toBe(30);
  expect(ready[2]).toBe(5 + 20);
  expect(ready[3]).toBe(20);
  expect(left).toBe(0);
  expect(lastAt).toBe(4750);
});

test("what is used up at the beginning goes later", async () => {
  const flow = { rate: rate(1000, 100), lane: { rate: rate(10, 5) } };
  const used = { now: 0, queue: 0, lanes: [{ lane: "a", used: 5 }] };
  const { ready } = await play(flow, { waiting: waiting({ a: 100, b: 100 }), used });
  expect(ready.slice(0, 2)).toEqual([9 + 14, 20]);
  const queueUsed = { now: 0, queue: 100, lanes: [] };
  const slow = { ...flow, rate: rate(10, 100) };
  const { ready: late } = await play(slow, {
    waiting: waiting({ a: 100, b: 100 }),
    used: queueUsed,
  });
  expect(late.slice(0, 3)).toEqual([9, 10, 10]);
});

test.each([
  [3, [40, 40, 20, 20, 20]],
  [1, [40, 40, 40, 20, 20]],
])("lanes share the rate of the queue by their weights: %i to 1", async (weight, ready) => {
  const flow = {
    rate: rate(40),
    lane: { rate: rate(20) },
    lanes: { b: { rate: rate(1000), weight } },
  };
  // All of b has gone after two or three seconds; then the rate of a counts.
  const played = await play(flow, { waiting: waiting({ a: 1000, b: 60 }) });
  for (const [i, count] of ready.entries()) {
    expect(Math.abs((played.ready[i] ?? NaN) - count)).toBeLessThanOrEqual(1);
  }
});

test("a lane that is held waits until then, one that is held for good for ever", async () => {
  const flow = { lane: { rate: rate(100, 10) } };
  const holds = new Map([
    ["a", 2500],
    ["b", Infinity],
  ]);
  const due = [{ lane: "b", due: 1500 }];
  const played = await play(flow, { waiting: waiting({ a: 10, c: 10 }), holds, due });
  expect(played.ready).toEqual([10, 0, 10, 0, 0]);
  expect(played.due).toEqual([0, 1, 0, 0, 0]);
  expect(played.waiting).toBe(1);
  expect(played.lastAt).toBe(2500);
});

test("a part has its share of the queue's rate", async () => {
  const flow = { rate: rate(40, 8), lane: { rate: rate(1000) } };
  const { ready } = await play(flow, { waiting: waiting({ a: 1000 }) }, 2, 4);
  expect(ready).toEqual([2 + 9, 10]);
});

test("spans that are over, and those of later, have nothing of now", async () => {
  const flow = { lane: { rate: rate(10) } };
  const ahead = { waiting: waiting({ a: 5 }), used: { now: 9000, queue: 0, lanes: [] } };
  const past = await play(flow, ahead);
  expect(past.ready).toEqual([0, 0, 0, 0, 0]);
  expect(past.waiting).toBe(5);
  const later = await play(flow, { ...ahead, used: { now: -300, queue: 0, lanes: [] } });
  expect(later).toMatchObject({ before: 2, ready: [2, 0, 0, 0, 0], waiting: 0, lastAt: 100 });
});

test("a backlog of millions is played in time, and others run meanwhile", async () => {
  const lanes = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`lane ${i}`, 5000]));
  const flow = { rate: rate(990_000, 50_000), lane: { rate: rate(500, 50) } };
  let ran = 0;
  const others = setInterval(() => ran++, 1);
  const { ready, waiting: left } = await play(flow, { waiting: waiting(lanes) }, 12);
  clearInterval(others);
  expect(ran).toBeGreaterThan(3);
  for (const count of ready.slice(1, 9)) expect(Math.abs(count - 990_000)).toBeLessThan(50_000);
  expect(left).toBe(0);
});
