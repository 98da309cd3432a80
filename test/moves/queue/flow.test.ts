import { expect, test } from "vitest";
import { pinLane, setFlow } from "../../../src/lua/queue/flow.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves, type Moves } from "../../helpers/moves.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const NOW = 5_000_000_000_000;
const micros = (instant: number) => String(instant * 1000);

const setAt = ({ redis, keys }: Moves, instant: number, step: number, burst: number, isEmpty = 0) =>
  run(redis, scriptAt(instant, setFlow), keys, {
    channel: keys.channel,
    step,
    burst,
    declared: "text",
    isEmpty,
    ...PACED,
  });

/** A rate, and no lanes. */
const PACED = { kind: "paced", ahead: 100, most: 0, lane: "0 0 1 0", rates: 0, slots: 0 };

const arrivalOf = async ({ redis, keys }: Moves) => await redis.hget(keys.flow, "arrival");

test("set-flow writes the rate, all of which may be used, and wakes everybody; without a kind it removes it", async () => {
  const queue = await newMoves();
  await setAt(queue, NOW, 1000, 5);
  const flow = { kind: "paced", step: "1000", burst: "5", arrival: micros(NOW), declared: "text" };
  expect(await queue.snapshot()).toEqual({ flow, channel: ["0"] });
  await run(queue.redis, setFlow, queue.keys, {
    channel: queue.keys.channel,
    ...PACED,
    kind: "none",
    step: 0,
    burst: 0,
    declared: "",
    isEmpty: 0,
  });
  expect(await queue.snapshot()).toEqual({ channel: ["0", "0"] });
});

test("what was used of the rate before stays used, in messages, and at most the new burst", async () => {
  const queue = await newMoves();
  await setAt(queue, NOW, 1000, 5);
  // Three messages are used up.
  await queue.redis.hset(queue.keys.flow, "arrival", micros(NOW + 3));
  await setAt(queue, NOW, 10_000, 5);
  expect(await arrivalOf(queue)).toBe(micros(NOW + 30));
  // Sent again, it changes nothing.
  await setAt(queue, NOW, 10_000, 5);
  expect(await arrivalOf(queue)).toBe(micros(NOW + 30));
  await setAt(queue, NOW, 1000, 2);
  expect(await arrivalOf(queue)).toBe(micros(NOW + 2));
  // After a while, nothing is.
  await setAt(queue, NOW + 100, 1000, 2);
  expect(await arrivalOf(queue)).toBe(micros(NOW + 100));
});

test("an empty one has used its burst up", async () => {
  const queue = await newMoves();
  await setAt(queue, NOW, 1000, 5, 1);
  expect(await arrivalOf(queue)).toBe(micros(NOW + 5));
});

test("foreign bytes in the rate count as nothing used", async () => {
  const queue = await newMoves();
  await queue.seed({ flow: { kind: "x", step: "no number", arrival: "nor this" } });
  await setAt(queue, NOW, 1000, 5);
  expect(await arrivalOf(queue)).toBe(micros(NOW));
});

/** Lanes without limits. */
const IN_LANES = {
  ...PACED,
  kind: "lanes",
  step: 0,
  burst: 0,
  declared: "text",
  isEmpty: 0,
};

/** Pins something of a lane; `rows`: what the flow says of lanes. */
const pinIn = ({ redis, keys }: Moves, pinned: string, pin: string, declared = "text", own = "") =>
  run(
    redis,
    scriptAt(NOW, pinLane),
    keys,
    { ...IN_LANES, channel: keys.channel, declared, pinned, pin },
    own === "" ? [] : [{ name: pinned, own }],
  );

test("a pin comes before what the flow says of the lane, then and later, until it ends", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const flow = { kind: "lanes", declared: "text", ahead: "100", lane: "0 0 1 0" };
  await run(redis, setFlow, keys, { ...IN_LANES, channel: keys.channel });
  const pin = '5 1 1 2 {"concurrency":2}';
  expect(await pinIn(queue, "a", pin, "another text")).toBe(false);
  expect((await queue.snapshot()).flow).toEqual(flow);
  expect(await pinIn(queue, "a", pin, "text", "0 0 3 0")).toBe(true);
  const pinned = { ...flow, "pin:a": pin, "lane:a": "5 1 1 2", own: "1", rates: "1", slots: "1" };
  expect((await queue.snapshot()).flow).toEqual(pinned);
  await run(redis, setFlow, keys, { ...IN_LANES, channel: keys.channel, declared: "new" }, [
    { name: "a", own: "0 0 7 0" },
    { name: "b", own: "0 0 8 0" },
  ]);
  expect((await queue.snapshot()).flow).toEqual({
    ...pinned,
    declared: "new",
    "lane:b": "0 0 8 0",
  });
  expect(await pinIn(queue, "a", "", "new", "0 0 7 0")).toBe(true);
  expect((await queue.snapshot()).flow).toEqual({
    ...flow,
    declared: "new",
    own: "1",
    "lane:a": "0 0 7 0",
  });
  await pinIn(queue, "a", pin, "new");
  await setAt(queue, NOW, 1000, 5);
  expect(Object.keys((await queue.snapshot()).flow ?? {}).toSorted()).toEqual([
    "arrival",
    "burst",
    "declared",
    "kind",
    "step",
  ]);
});

test("a lane that is paused rests for good, and goes on when its pin ends; others stay as they are", async () => {
  const queue = await newMoves();
  await queue.seed({
    flow: {
      kind: "lanes",
      declared: "text",
      ahead: "100",
      lane: "0 0 1 0",
      turn: "7",
      "hold:b": `${NOW + 50}`,
      holds: `${NOW + 50}`,
    },
    turns: [["\x01a\x80\x18aaaaaaaaaaaaaaaaaaaaaaaa", 0]],
    lanes: [
      ["a", 3],
      ["c", 5],
      ["b", 1e12 + 4],
    ],
    resting: [["b", NOW + 50]],
  });
  expect(await pinIn(queue, "a", 'paused {"paused":true}')).toBe(true);
  const paused = await queue.snapshot();
  expect(paused.flow).toMatchObject({
    "hold:a": "8640000000000000",
    "hold:b": `${NOW + 50}`,
    holds: `${NOW + 50}`,
    turn: "7",
  });
  expect(paused.lanes).toEqual([
    ["c", 5],
    ["a", 1e12 + 3],
    ["b", 1e12 + 4],
  ]);
  expect(paused.resting).toEqual([
    ["b", NOW + 50],
    ["a", 8.64e15],
  ]);
  expect(await pinIn(queue, "a", 'paused {"paused":true}')).toBe(true);
  expect({ ...(await queue.snapshot()), channel: [] }).toEqual({ ...paused, channel: [] });
  expect(await pinIn(queue, "a", "")).toBe(true);
  const after = await queue.snapshot();
  expect(after.flow).not.toHaveProperty("hold:a");
  expect(after.lanes).toEqual([
    ["a", 3],
    ["c", 5],
    ["b", 1e12 + 4],
  ]);
  expect(after.resting).toEqual([["b", NOW + 50]]);
});
