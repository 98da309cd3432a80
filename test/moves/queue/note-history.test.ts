import { expect, test } from "vitest";
import { noteHistory } from "../../../src/lua/queue/history.ts";
import { run } from "../../../src/lua/script.ts";
import { lastNotedAt, NOTED, readPast, type NotedNumbers } from "../../../src/queue/history.ts";
import { newMoves, type Moves } from "../../helpers/moves.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The beginning of a day. */
const START = 20_000 * DAY;

const NONE = Object.fromEntries(NOTED.map((name) => [name, ""])) as Record<string, string>;

const note = ({ redis, keys }: Moves, at: number, numbers: Partial<NotedNumbers>) =>
  run(redis, scriptAt(at, noteHistory), keys, { ...NONE, ...numbers } as any);

const past = ({ redis, keys }: Moves, of: "minutes" | "days", count: number, now: number) =>
  readPast(redis, keys.ready, { of, count, now });

test("note-history: the first of a minute counts, and each minute is told from the next", async () => {
  const queue = await newMoves();
  expect(await lastNotedAt(queue.redis, queue.keys.ready)).toBeUndefined();
  expect(await note(queue, START + 5_000, { delayed: 3, ready: 0 })).toBe(true);
  expect(await note(queue, START + 59_000, { delayed: 9 })).toBe(false);
  expect(await note(queue, START + 3 * MINUTE, { delayed: 15, dead: 1 })).toBe(true);
  const { from, step, values } = await past(queue, "minutes", 5, START + 4 * MINUTE);
  expect({ from, step }).toEqual({ from: START, step: MINUTE });
  expect(values.delayed).toEqual([3, undefined, undefined, 15, undefined]);
  expect(values.ready).toEqual([0, undefined, undefined, undefined, undefined]);
  expect(values.dead[3]).toBe(1);
  expect(await lastNotedAt(queue.redis, queue.keys.ready)).toBe(START + 3 * MINUTE);
});

test("note-history: values to 15 are exact, and greater ones to 4 %", async () => {
  const queue = await newMoves();
  const all = [0, 1, 15, 16, 17, 100, 1_234, 999_999, 10 ** 9, 10 ** 12];
  for (const [i, delayed] of all.entries()) await note(queue, START + i * MINUTE, { delayed });
  const { values } = await past(queue, "minutes", all.length, START + (all.length - 1) * MINUTE);
  for (const [i, value] of all.slice(0, -1).entries()) {
    const found = values.delayed[i] ?? -1;
    if (value <= 15) expect(found).toBe(value);
    else expect(Math.abs(found / value - 1), `${value}: ${found}`).toBeLessThan(0.045);
  }
  expect(values.delayed.at(-1)).toBeGreaterThan(1.4e9);
});

test("note-history: what has finished is counted per minute, and summed up for the day", async () => {
  const queue = await newMoves();
  const at = START + 10 * MINUTE;
  await note(queue, at, { finished: 100 });
  await note(queue, at + MINUTE, { finished: 107 });
  // Nobody looked for four minutes: on average, four a minute.
  await note(queue, at + 5 * MINUTE, { finished: 123 });
  // The stream was deleted, and created again.
  await note(queue, at + 6 * MINUTE, { finished: 2 });
  await note(queue, at + 7 * MINUTE, { finished: 5 });
  const { values } = await past(queue, "minutes", 8, at + 7 * MINUTE);
  const none = undefined;
  expect(values.finished).toEqual([none, 7, none, none, none, 4, none, 3]);
  const days = await past(queue, "days", 1, at);
  expect(days.values.finished[0]).toBeGreaterThan(24);
  expect(days.values.finished[0]).toBeLessThan(28);
});

test("note-history: only the share of a new day counts for it", async () => {
  const queue = await newMoves();
  await note(queue, START + DAY - 30 * MINUTE, { finished: 0 });
  await note(queue, START + DAY + 10 * MINUTE, { finished: 40 });
  const { values } = await past(queue, "days", 2, START + DAY);
  expect(values.finished).toEqual([undefined, 10]);
});

test("note-history: a day has the most of its minutes", async () => {
  const queue = await newMoves();
  for (const [i, ready] of [2, 9, 4].entries())
    await note(queue, START + i * HOUR, { ready, late: 1000 });
  await note(queue, START + DAY, { ready: 1 });
  const { from, values } = await past(queue, "days", 90, START + DAY);
  expect(from).toBe(START - 88 * DAY);
  expect(values.ready.slice(-3)).toEqual([undefined, 9, 1]);
});

test("note-history: a day of minutes and 90 days, in a few kB, and old ones are never shown as new", async () => {
  const queue = await newMoves();
  const end = START + 130 * DAY;
  for (let at = START; at < end - DAY; at += DAY / 2) await note(queue, at, { delayed: 12 });
  for (let at = end - DAY; at <= end; at += 10 * MINUTE) await note(queue, at, { delayed: 5 });
  const minutes = await past(queue, "minutes", 1440, end);
  expect(minutes.values.delayed.filter((one) => one === 5)).toHaveLength(144);
  expect(new Set(minutes.values.delayed)).toEqual(new Set([5, undefined]));
  const days = await past(queue, "days", 90, end);
  expect(days.values.delayed.slice(0, 88)).toEqual(Array.from({ length: 88 }, () => 12));
  // An hour of weeks ago has the place of a later one.
  const later = await past(queue, "minutes", 1440, end + 25 * HOUR);
  expect(new Set(later.values.delayed)).toEqual(new Set([undefined]));
  const { history } = queue.keys;
  expect(await queue.redis.hlen(history)).toBe(30);
  expect(await queue.redis.memory("USAGE", history, "SAMPLES", 0)).toBeLessThan(14_000);
});

test("note-history: kept for as long as it goes back, between two days and 91", async () => {
  const queue = await newMoves();
  const days = async () => Math.round((await queue.redis.ttl(queue.keys.history)) / 86_400);
  await note(queue, START, { delayed: 1 });
  expect(await days()).toBe(2);
  await note(queue, START + 9 * DAY, { delayed: 1 });
  expect(await days()).toBe(9);
  await note(queue, START + 400 * DAY, { delayed: 1 });
  expect(await days()).toBe(91);
});

test("note-history: a clock that was set back, and foreign bytes, begin a new past", async () => {
  const queue = await newMoves();
  await note(queue, START + DAY, { delayed: 4, finished: 50 });
  expect(await note(queue, START + DAY - MINUTE, { delayed: 5 })).toBe(false);
  expect(await note(queue, START, { delayed: 6, finished: 60 })).toBe(true);
  expect((await past(queue, "minutes", 1, START)).values).toMatchObject({
    delayed: [6],
    finished: [undefined],
  });
  const { history } = queue.keys;
  const fields = await queue.redis.hkeys(history);
  for (const foreign of ["", "1 2 3", "9".repeat(300), "\u0000", "x x x x", "1 -5 7 1e9"]) {
    for (const field of fields) await queue.redis.hset(history, field, foreign);
    expect(await note(queue, START + 5 * MINUTE, { delayed: 7 }), foreign).toBe(true);
    expect((await past(queue, "minutes", 1, START + 5 * MINUTE)).values.delayed).toEqual([7]);
  }
});
