import { expect, test } from "vitest";
import { tellTime } from "../../../src/lua/queue/stats.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves, type QueueState } from "../../helpers/moves.ts";
import { scriptAt } from "../../helpers/script-at.ts";
import { serverTime } from "../../helpers/server-time.ts";

test.each<{ what: string; state: QueueState }>([
  { what: "an empty queue", state: {} },
  { what: "a queue with a message", state: { ready: ["ready"] } },
])("tell-time: the server's clock, for $what", async ({ state }) => {
  const queue = await newMoves();
  await queue.seed(state);
  const earliest = await serverTime(queue.redis);
  const told = await run(queue.redis, tellTime, queue.keys, {});
  expect(told).toBeGreaterThanOrEqual(earliest);
  expect(told).toBeLessThanOrEqual(await serverTime(queue.redis));
  expect(await queue.snapshot()).toEqual(state);
});

test("tell-time: has fractions of a millisecond", async () => {
  const { redis, keys } = await newMoves();
  const instant = 5_000_000_000_000.25;
  expect(await run(redis, scriptAt(instant, tellTime), keys, {})).toBe(instant);
});
