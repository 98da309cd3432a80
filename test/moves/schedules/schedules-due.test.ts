import { expect, test } from "vitest";
import { readSchedule, schedulesDue } from "../../../src/lua/schedules/schedules-due.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves } from "../../helpers/moves.ts";

test("the schedules that are to be planned by now, in pages, and when the next one is", async () => {
  const { redis, keys, seed } = await newMoves();
  await seed({
    schedules: { a: "record a", b: "record b", later: "later", over: "over" },
    planning: [
      ["b", 2000],
      ["a", 1000],
      ["gone", 3000],
      ["later", 5_000_000_000_000],
      ["over", Infinity],
    ],
  });
  const due = async (offset: number, limit: number) =>
    await run(redis, schedulesDue, keys, { offset, limit });
  const { due: all, next } = await due(0, 10);
  expect(all).toEqual([
    { name: "a", record: Buffer.from("record a") },
    { name: "b", record: Buffer.from("record b") },
    { name: "gone", record: undefined },
  ]);
  expect(next).toBe(5_000_000_000_000);
  expect((await due(1, 1)).due).toEqual([{ name: "b", record: Buffer.from("record b") }]);
  await redis.zrem(keys.planning, "later");
  expect(await due(3, 10)).toMatchObject({ due: [], next: undefined });
});

test("a record, and the time", async () => {
  const { redis, keys, seed } = await newMoves();
  await seed({ schedules: { a: "record a" } });
  const { record, serverTime } = await run(redis, readSchedule, keys, { name: "a" });
  expect(record).toEqual(Buffer.from("record a"));
  expect(Math.abs(serverTime - Date.now())).toBeLessThan(10_000);
  expect(await run(redis, readSchedule, keys, { name: "b" })).toMatchObject({ record: undefined });
});
