import { describe, expect, test } from "vitest";
import type { FlowOptions, NewMessage } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

const BEGIN = Date.parse("2026-03-01T00:00:00Z");

/** `count` messages of a lane, which fall due over `seconds` from `from` on. */
const inLane = (lane: string, count: number, from = 0, seconds = 0): NewMessage<number>[] =>
  Array.from({ length: count }, (_, i) => ({
    payload: i,
    delay: Math.round((from + (i * seconds) / count) * SECOND),
    ...(lane !== "" && { lane }),
  }));

async function open() {
  const clock = await newClock({ now: BEGIN });
  const name = uniqueName("preview");
  const line = newLine();
  const queue = line.getDelayedQueue<number>(name);
  let taken = 0;
  const consume = () => line.getBlockingQueue(name).subscribe(() => void taken++);
  /** How many become ready in each of these spans, and when all have. */
  const watch = async (step: number, count: number) => {
    const ready: number[] = [];
    for (let i = 0; i < count; i++) {
      const before = taken;
      await clock.advance(step);
      ready.push(taken - before);
    }
    return ready;
  };
  return { clock, queue, consume, watch };
}

/** What waits for its turn and what is due by rates, each span within `share` of what happens, or one message. */
function expectNear(
  foreseen: readonly { ready: number }[],
  ready: readonly number[],
  share: number,
) {
  const said = foreseen.map((span) => span.ready);
  for (const [i, count] of ready.entries()) {
    const isNear = Math.abs((said[i] ?? NaN) - count) <= Math.max(1, share * count);
    expect(isNear, `span ${i}: ${said.join(" ")} was said, ${ready.join(" ")} came`).toBe(true);
  }
}

const FLOWS: readonly [string, FlowOptions][] = [
  ["rates of lanes", { lane: { rate: { limit: 20, per: SECOND } } }],
  [
    "a rate of the queue that is less than the lanes together, and weights",
    {
      rate: { limit: 50, per: SECOND },
      lane: { rate: { limit: 30, per: SECOND } },
      lanes: { b: { rate: { limit: 40, per: SECOND }, weight: 4 }, c: { weight: 0.5 } },
    },
  ],
  [
    "slow lanes, one message at a time",
    {
      lane: { rate: { limit: 30, per: MINUTE, burst: 1 } },
      lanes: { a: { rate: { limit: 50, per: SECOND, burst: 1 } } },
    },
  ],
];

describe("a preview of a flow whose lanes have rates", () => {
  test.each(FLOWS)("says what then happens: %s", async (_, flow) => {
    const { queue, consume, watch } = await open();
    await queue.offerMany([
      // No turn comes just when a span ends.
      ...inLane("a", 150, 0.53),
      ...inLane("b", 60, 1.03, 3),
      ...inLane("c", 20, 2.03),
      ...inLane("", 20, 3.03, 1),
    ]);
    const preview = await queue.flow.preview({ flow, step: SECOND, count: 6 });
    expect(await queue.flow.get()).toBeUndefined();
    await queue.flow.set(flow);
    consume();
    const ready = await watch(SECOND, 6);
    expectNear(preview.spans, ready, 0.05);
    expect(preview.seenUntil).toBeUndefined();
    const due = preview.spans.map((span) => span.due);
    expect(due.reduce((sum, count) => sum + count, 0)).toBe(250);
    let waiting = 0;
    for (const span of preview.spans) {
      waiting += span.due - span.ready;
      expect(span.waiting).toBe(waiting);
    }
    const last = ready.findLastIndex((count) => count > 0);
    const left = (await queue.stats()).waiting;
    if (left > 0) expect(preview.endsAt).toBeUndefined();
    else {
      expect(preview.endsAt).toBeGreaterThanOrEqual(BEGIN + last * SECOND - 100);
      expect(preview.endsAt).toBeLessThanOrEqual(BEGIN + (last + 1) * SECOND + 100);
    }
  });

  test("of the present flow begins with what waits, what is used up, and lanes that are held", async () => {
    const { clock, queue, consume, watch } = await open();
    const rate = { limit: 10, per: 10 * SECOND, burst: 5 };
    await queue.flow.set({ rate: { limit: 40, per: SECOND }, lane: { rate }, lanes: { a: {} } });
    await queue.flow.hold("held", 5 * SECOND);
    await queue.offerMany([
      ...inLane("a", 300),
      ...inLane("b", 40),
      ...inLane("held", 20),
      ...inLane("c", 30, 6),
    ]);
    consume();
    await clock.advance(1500);
    const { waiting } = await queue.stats();
    expect(waiting).toBeGreaterThan(100);
    const { from, spans } = await queue.flow.preview({ step: SECOND, count: 6 });
    expect(from).toBe(BEGIN + 1500);
    expect(spans[0]?.due).toBe(waiting);
    expectNear(spans, await watch(SECOND, 6), 0.05);
  });

  test("begins later with what has not gone by then", async () => {
    const { clock, queue, consume, watch } = await open();
    const flow = { lane: { rate: { limit: 10, per: SECOND } } };
    await queue.offerMany([...inLane("a", 100, 0.5), ...inLane("b", 20, 0.5)]);
    const from = BEGIN + 3 * SECOND;
    const preview = await queue.flow.preview({ flow, from, step: SECOND, count: 4 });
    await queue.flow.set(flow);
    consume();
    await clock.advance(3 * SECOND);
    const { waiting } = await queue.stats();
    expect(Math.abs((preview.spans[0]?.due ?? NaN) - waiting)).toBeLessThanOrEqual(2);
    expectNear(preview.spans, await watch(SECOND, 4), 0.05);
  });

  test("has retries in it", async () => {
    const clock = await newClock();
    const queue = newLine().getReliableQueue<number>(uniqueName("preview"));
    await queue.offerMany([...inLane("a", 3), ...inLane("b", 2)]);
    let failed = 0;
    let done = 0;
    queue.subscribe(async (_, delivery) => {
      if (delivery.attempt > 1) {
        done++;
        return;
      }
      await delivery.nack({ delay: 5 * SECOND });
      failed++;
    });
    await clock.advance(0);
    await eventually(() => failed === 5);
    const flow = { lane: { rate: { limit: 1, per: SECOND, burst: 1 } } };
    const { spans } = await queue.flow.preview({ flow, step: SECOND, count: 10 });
    expect(spans.map(({ due }) => due)).toEqual([0, 0, 0, 0, 0, 5, 0, 0, 0, 0]);
    expect(spans.map(({ ready }) => ready)).toEqual([0, 0, 0, 0, 0, 2, 2, 1, 0, 0]);
    await queue.flow.set(flow);
    await clock.advance(10 * SECOND);
    expect(done).toBe(5);
  });

  test("of lanes without rates, a rate of the queue alone counts", async () => {
    const { queue } = await open();
    await queue.offerMany([...inLane("a", 100), ...inLane("b", 20)]);
    const rate = { limit: 10, per: SECOND, burst: 1 };
    const spans = { step: SECOND, count: 5 };
    const inLanes = await queue.flow.preview({
      flow: { rate, lane: { concurrency: 2 } },
      ...spans,
    });
    expect(inLanes).toEqual(await queue.flow.preview({ flow: { rate }, ...spans }));
  });

  test("ends with the signal's reason", async () => {
    const { queue } = await open();
    const flow = { lane: { rate: { limit: 1, per: SECOND } } };
    const signal = AbortSignal.abort(new Error("enough"));
    const preview = queue.flow.preview({ flow, step: SECOND, count: 2, signal });
    await expect(preview).rejects.toThrow("enough");
  });
});

test("a preview of the present rate knows what of it is used up", async () => {
  const { clock, queue, consume, watch } = await open();
  await queue.flow.set({ rate: { limit: 100, per: SECOND, burst: 60 } });
  await queue.offerMany(inLane("", 500));
  consume();
  await clock.advance(SECOND);
  const { spans } = await queue.flow.preview({ step: SECOND, count: 5 });
  expectNear(spans, await watch(SECOND, 5), 0.02);
});
