import { expect, test } from "vitest";
import { setFlow } from "../../../src/lua/queue/flow.ts";
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
