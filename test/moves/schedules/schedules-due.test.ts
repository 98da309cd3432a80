import { expect, test } from "vitest";
import {
  readSchedule,
  restorePlanning,
  schedulesDue,
  schedulesPage,
} from "../../../src/lua/schedules/schedules-due.ts";
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

test("a page of the schedules, with whether each is planned and what was dropped of it", async () => {
  const { redis, keys, seed } = await newMoves();
  await seed({
    schedules: { a: "record a", b: "record b", "\0set": "7" },
    planning: [["a", 1000]],
    dropped: { "deliverWithin\0a": "2", "overlap\0b": "3", overlap: "4" },
  });
  const { cursor, rows } = await run(redis, schedulesPage, keys, { cursor: "0", count: 100 });
  expect(cursor).toBe("0");
  const found = rows.map(({ field, value, ...rest }) => [String(field), String(value), rest]);
  const none = { isPlanned: false, droppedLate: 0, droppedOverlap: 0 };
  expect(new Set(found)).toEqual(
    new Set([
      ["a", "record a", { ...none, isPlanned: true, droppedLate: 2 }],
      ["b", "record b", { ...none, droppedOverlap: 3 }],
      ["\0set", "7", none],
    ]),
  );
});

test("schedules of which Redis does not know when to plan them are to be planned now, and no others", async () => {
  const { redis, keys, seed } = await newMoves();
  expect(await run(redis, restorePlanning, keys, {})).toBe(0);
  await seed({
    schedules: { lost: "record", later: "record", "\0set": "7" },
    planning: [["later", 5_000_000_000_000]],
  });
  expect(await run(redis, restorePlanning, keys, {})).toBe(2);
  expect(await redis.zscore(keys.planning, "later")).toBe("5000000000000");
  const lost = Number(await redis.zscore(keys.planning, "lost"));
  expect(Math.abs(lost - Date.now())).toBeLessThan(10_000);
});
