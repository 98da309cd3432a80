import { expect, test } from "vitest";
import { lastArrived } from "../../../src/lua/partitions/last-arrived.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves } from "../../helpers/moves.ts";

test("the number of the last batch of one source; 0 if none has arrived", async () => {
  const { redis, keys } = await newMoves();
  await redis.hset(keys.arrivals, "3", "17");
  expect(await run(redis, lastArrived, keys, { source: "3" })).toBe(17);
  expect(await run(redis, lastArrived, keys, { source: "4" })).toBe(0);
});
