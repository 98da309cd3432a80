import { expect, test } from "vitest";
import { setPaused } from "../../../src/lua/queue/set-paused.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves, type Moves } from "../../helpers/moves.ts";

const set = ({ redis, keys }: Moves, isPaused: 0 | 1, reason = "") =>
  run(redis, setPaused, keys, { channel: keys.channel, isPaused, reason });

test("set-paused: sets or removes the key, and wakes everybody", async () => {
  const queue = await newMoves();
  await queue.seed({ ready: ["r"] });
  await set(queue, 1);
  await set(queue, 1);
  expect(await queue.snapshot()).toEqual({ ready: ["r"], paused: "1", channel: ["0", "0"] });
  await set(queue, 1, "deploying");
  expect(await queue.snapshot()).toMatchObject({ paused: "deploying" });
  await set(queue, 0);
  expect(await queue.snapshot()).toEqual({ ready: ["r"], channel: ["0", "0", "0", "0"] });
});
