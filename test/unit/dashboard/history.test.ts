import { expect, test } from "vitest";
import {
  brokenRow,
  Histories,
  History,
  type QueueRow,
} from "../../../src/tools/view/samples/history.ts";
import { upTo } from "../../helpers/numbers.ts";

const { error: _, ...empty } = brokenRow("orders", "");
const row = (numbers: Partial<QueueRow> = {}): QueueRow => ({ ...empty, ...numbers });

/** The counts of a reliable queue. */
const counted = (readied: number, finished: number) => row({ readied, finished });

test("rates are per second between two points", () => {
  const history = new History();
  history.add(10_000, counted(100, 40));
  history.add(20_000, counted(150, 40));
  history.add(32_000, counted(150, 64));
  expect(history.points().map(({ readied, finished }) => [readied, finished])).toEqual([
    [undefined, undefined],
    [5, 0],
    [0, 2],
  ]);
});

test("no rate after a gap, for a stream that was created again, or for a plain queue", () => {
  const history = new History();
  const numbers = [
    [0, counted(100, 100)],
    [91_000, counted(200, 200)],
    [101_000, counted(5, 5)],
    [111_000, row()],
    [121_000, counted(7, 7)],
  ] as const;
  for (const [at, of] of numbers) history.add(at, of);
  expect(history.points().map(({ readied }) => readied)).toEqual(numbers.map(() => undefined));
});

test("points are ten seconds apart, and an hour of them is kept", () => {
  const history = new History();
  for (let i = 0; i < 1000; i++) history.add(i * 5000, row({ delayed: i, oldestReadyAge: 7 }));
  const points = history.points();
  expect(points).toHaveLength(360);
  expect(points[0]).toEqual({
    at: 140 * 10_000,
    delayed: 280,
    overdue: 0,
    overdueBy: 0,
    ready: 0,
    inFlight: 0,
    retries: 0,
    dead: 0,
    oldestReadyAge: 7,
    late: 7,
    readied: undefined,
    finished: undefined,
  });
  expect(points.at(-1)?.at).toBe(499 * 10_000);
});

test("the last point of each minute, of those that are kept", () => {
  const history = new History();
  for (let i = 0; i < 400; i++) history.add(i * 10_000, row({ delayed: i }));
  const minutes = history.minutes();
  expect(minutes.map(({ delayed }) => delayed)).toEqual([
    ...upTo(60).map((minute) => 41 + minute * 6),
    399,
  ]);
  expect(minutes.at(-1)).toEqual(history.points().at(-1));
});

test("numbers that could not be read add no point", () => {
  const history = new History();
  history.add(0, brokenRow("orders", "Redis is away"));
  expect(history.points()).toEqual([]);
});

test("keeps a thousand queues, and forgets those without a point for an hour", () => {
  const histories = new Histories();
  for (let i = 0; i < 1001; i++) histories.add(`queue-${i}`, 0, row());
  expect(histories.points("queue-999")).toHaveLength(1);
  expect(histories.points("queue-1000")).toEqual([]);
  histories.add("queue-1", 10_000, row());
  histories.sweep(3_605_000);
  expect(histories.points("queue-0")).toEqual([]);
  expect(histories.points("queue-1")).toHaveLength(2);
});
