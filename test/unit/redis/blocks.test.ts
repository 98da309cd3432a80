import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Blocks } from "../../../src/redis/blocks.ts";

/** Milliseconds in which one of the long blocks ends. */
const QUIET = 30_000;
const SHORT = 2;

let blocks: Blocks;
let allow: () => Promise<unknown>;
let asked: number;

beforeEach(() => {
  vi.useFakeTimers();
  // No spread.
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  asked = 0;
  allow = () => Promise.resolve(0);
  blocks = new Blocks(QUIET, () => {
    asked++;
    return allow();
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function ignore(): void {}

/** Hears of these queues, and learns that blocks may be ended. */
async function quiet(...lists: string[]): Promise<void> {
  for (const list of lists) blocks.hear(list);
  blocks.begin(lists, ignore).end();
  await vi.advanceTimersByTimeAsync(1);
}

test("a block is short as long as Redis has not said that it may be ended", async () => {
  blocks.hear("q");
  expect(blocks.begin(["q"], ignore).seconds).toBe(SHORT);
  await vi.advanceTimersByTimeAsync(1);
  expect(blocks.begin(["q"], ignore).seconds).toBe(30);
  expect(asked).toBe(1);
});

test("a block stays short if Redis refuses to end it, and is asked again if there was no reply", async () => {
  allow = () => Promise.reject(new Error("lost"));
  await quiet("q");
  allow = () => Promise.reject(Object.assign(new Error("NOPERM no"), { name: "ReplyError" }));
  expect(blocks.begin(["q"], ignore).seconds).toBe(SHORT);
  await vi.advanceTimersByTimeAsync(1);
  expect(blocks.begin(["q"], ignore).seconds).toBe(SHORT);
  await vi.advanceTimersByTimeAsync(1);
  expect(blocks.begin(["q"], ignore).seconds).toBe(SHORT);
  expect(asked).toBe(2);
});

test("a block for a queue of which nothing is heard is short", async () => {
  await quiet("q");
  expect(blocks.begin(["q", "other"], ignore).seconds).toBe(SHORT);
});

test("the more blocks, the longer each: together they end as often as one", async () => {
  await quiet("a", "b", "c");
  const lengths = ["a", "b", "c"].map((list) => blocks.begin([list], ignore).seconds);
  expect(lengths).toEqual([30, 60, 90]);
});

test("none lasts longer than an hour", async () => {
  await quiet("q");
  const lengths = Array.from({ length: 200 }, () => blocks.begin(["q"], ignore).seconds);
  expect(Math.max(...lengths)).toBe(3600);
});

test("blocks are short for ten seconds after something has happened", async () => {
  await quiet("q", "other");
  blocks.happened("q");
  expect(blocks.begin(["q"], ignore).seconds).toBe(SHORT);
  expect(blocks.begin(["other"], ignore).seconds).toBe(30);
  vi.advanceTimersByTime(9_900);
  expect(blocks.begin(["q"], ignore).seconds).toBe(SHORT);
  vi.advanceTimersByTime(200);
  expect(blocks.begin(["q"], ignore).seconds).toBeGreaterThan(SHORT);
});

test("a long block is proved a second after something has happened, once", async () => {
  await quiet("q", "other");
  const [prove, proveOther] = [vi.fn(), vi.fn()];
  blocks.begin(["q"], prove);
  blocks.begin(["other"], proveOther);
  blocks.happened("q");
  vi.advanceTimersByTime(500);
  blocks.happened("q");
  expect(prove).not.toHaveBeenCalled();
  vi.advanceTimersByTime(500);
  expect(prove).toHaveBeenCalledOnce();
  vi.advanceTimersByTime(60_000);
  expect([prove.mock.calls.length, proveOther.mock.calls.length]).toEqual([1, 0]);
});

test("a block that has returned the message need not be proved", async () => {
  await quiet("q");
  const prove = vi.fn();
  const { end } = blocks.begin(["q"], prove);
  blocks.happened("q");
  vi.advanceTimersByTime(500);
  end();
  vi.advanceTimersByTime(60_000);
  expect(prove).not.toHaveBeenCalled();
});

test("all long blocks are proved when another connection has died, or nobody hears of their queue any more", async () => {
  await quiet("q");
  const stop = blocks.hear("other");
  const [prove, proveOther] = [vi.fn(), vi.fn()];
  const first = blocks.begin(["q"], prove);
  blocks.begin(["other"], proveOther);
  stop();
  vi.advanceTimersByTime(1000);
  expect([prove.mock.calls.length, proveOther.mock.calls.length]).toEqual([0, 1]);
  blocks.suspectAll();
  vi.advanceTimersByTime(1000);
  expect(prove).toHaveBeenCalledOnce();
  first.end();
});
