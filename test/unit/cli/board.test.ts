import { expect, test } from "vitest";
import { NO_NUMBERS } from "../../../src/nouns/numbers.ts";
import type { QueueStats } from "../../../src/observe/queue-stats.ts";
import { Board } from "../../../src/tools/cli/top/board.ts";
import { brokenRow, rowOf } from "../../../src/tools/view/samples/history.ts";
import type { Round, Sample } from "../../../src/tools/view/samples/sampler.ts";
import { silence } from "../../../src/tools/view/trouble.ts";

const AT = Date.UTC(2026, 10, 26, 9);

const WELL: QueueStats = {
  kind: "reliable",
  isPaused: false,
  pauseReason: undefined,
  serverTime: AT,
  perPartition: [],
  ...NO_NUMBERS,
  delayed: 1000,
  nextDeadline: AT + 60_000,
  consumers: 1,
  listeners: 1,
  readied: 0,
  finished: 0,
};

/** A round that has read these queues. Those that it could not read have the reason in place of numbers. */
function round(queues: Readonly<Record<string, Partial<QueueStats> | string>>, at = AT): Round {
  const samples = Object.entries(queues).map(([name, found]): [string, Sample] => {
    if (typeof found === "string") {
      const row = brokenRow(name, found);
      return [name, { row, stats: undefined, isStill: false, failure: new Error(found) }];
    }
    const stats = { ...WELL, serverTime: at, ...found };
    return [name, { row: rowOf(name, 0, stats), stats, isStill: false }];
  });
  return { at, samples: new Map(samples) };
}

const FRAME = { columns: 200, rows: 20, hasColours: false, now: 0 };

/** The names of the queues on the board, in their order. */
function shown(board: Board, frame = FRAME): string[] {
  const lines = board.draw(frame).slice(4, -1);
  return lines.map((line) => line.split(" ")[0] ?? "").filter((name) => name !== "");
}

const newBoard = () => new Board("localhost", { interval: 2000, now: 0 });

test("queues with errors come first, then those with warnings; other columns sort as well", () => {
  const board = newBoard();
  const all = {
    a: { delayed: 5, dead: 0 },
    b: { delayed: 10 },
    c: { isPaused: true, delayed: 7 },
    d: { ready: 3, consumers: 0, delayed: 1 },
    e: "WRONGTYPE",
  };
  board.add(round(all), 0);
  expect(shown(board)).toEqual(["d", "e", "c", "a", "b"]);
  board.sortBy(1);
  expect(shown(board)).toEqual(["a", "b", "c", "d", "e"]);
  board.turnRound();
  expect(shown(board)).toEqual(["e", "d", "c", "b", "a"]);
  board.sortBy(1);
  expect(shown(board)).toEqual(["b", "c", "a", "d", "e"]);
  const [heading, , titles, totals] = board.draw(FRAME);
  expect(heading).toBe("localhost  2026-11-26 09:00:00 UTC  5 queues, 3 to look at");
  expect(titles).toMatch(/^QUEUE {2,}DELAYED v {2}OVERDUE/);
  expect(totals).toMatch(/^\(all 5\) +23 /);
});

test("a narrow terminal has fewer columns, and lines that fit; a low one scrolls", () => {
  const board = newBoard();
  const names = Array.from({ length: 50 }, (_, i) => `a-queue-${100 + i}`);
  board.add(round(Object.fromEntries(names.map((name) => [name, {}]))), 0);
  for (const columns of [40, 80, 100, 200]) {
    const lines = board.draw({ ...FRAME, columns });
    expect(lines).toHaveLength(FRAME.rows);
    if (columns < 80) continue;
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
    expect(lines[2]?.includes("QUARANTINED")).toBe(columns === 200);
    expect(lines[2]).toContain("IN FLIGHT");
  }
  expect(shown(board)).toEqual(names.slice(0, 15));
  board.scroll(1, "row");
  expect(shown(board)).toEqual(names.slice(1, 16));
  for (let i = 0; i < 9; i++) board.scroll(1, "page");
  expect(shown(board)).toEqual(names.slice(-15));
  for (let i = 0; i < 9; i++) board.scroll(-1, "page");
  expect(shown(board)).toEqual(names.slice(0, 15));
});

test("what was dropped has a column as soon as a queue has dropped anything, on a narrow terminal too", () => {
  const board = newBoard();
  board.add(round({ a: {}, b: {} }), 0);
  expect(board.table(200)[0]).not.toContain("DROPPED");
  board.add(round({ a: { dropped: 40 }, b: { dropped: 2 } }), 0);
  for (const columns of [80, 200]) {
    const [titles, totals] = board.table(columns);
    expect(titles).toContain("DROPPED");
    expect(totals).toMatch(/ 42( |$)/);
  }
});

test("the rate is that of the last ten seconds, and unknown where the count cannot tell", () => {
  const board = newBoard();
  const rateAfter = (seconds: number, finished: number | undefined) => {
    board.add(round({ a: { finished } }, AT + seconds * 1000), seconds * 1000);
    return board.rows[0]?.finished;
  };
  expect(rateAfter(0, 100)).toBeUndefined();
  expect(rateAfter(2, 110)).toBe(300);
  for (let second = 4; second <= 20; second += 2) rateAfter(second, 110);
  expect(board.rows[0]?.finished).toBe(0);
  // The stream was deleted.
  expect(rateAfter(22, 3)).toBeUndefined();
  expect(rateAfter(24, 4)).toBe(30);
  expect(rateAfter(26, undefined)).toBeUndefined();
});

test("while Redis is away the last numbers stay, and the board says since when and how old they are", () => {
  const board = newBoard();
  board.add(round({ a: { delayed: 1234 } }), 0);
  const at = (now: number) => board.draw({ ...FRAME, now });
  expect(at(1000)[1]).toBe("");
  // No round has come at all.
  const since = "Redis has not answered since 2026-11-26 09:00:00 UTC.";
  expect(at(8000)[1]).toBe(`${since} The numbers are 8 s old.`);
  const trouble = silence(AT, { kind: "refused", what: "is not there", repair: "start it" });
  board.add({ ...round({}), trouble }, 9000);
  expect(at(9000)[1]).toBe(`${since} It is not there. Start it. The numbers are 9 s old.`);
  expect(at(9000)[4]).toMatch(/^a +1,234/);
  board.add(round({ a: { delayed: 1235 } }), 10_000);
  expect(at(10_000)[1]).toBe("");
  expect(at(10_000)[4]).toMatch(/^a +1,235/);
});

test("one queue that cannot be read does not stand for Redis", () => {
  const board = newBoard();
  board.add(round({ a: {}, b: "WRONGTYPE \u001b[2J" }), 0);
  const lines = board.draw(FRAME);
  expect(lines[1]).toBe("");
  expect(lines[4]).toMatch(/^b +\?.* WRONGTYPE \\u\{1b\}\[2J$/);
  expect(board.failure).toBeUndefined();
});
