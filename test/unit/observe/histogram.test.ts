import { expect, test } from "vitest";
import { BOUNDS, Histogram } from "../../../src/observe/histogram.ts";

test("each duration falls into one bucket, which includes its upper bound", () => {
  const histogram = new Histogram();
  histogram.record(-5);
  histogram.record(1);
  histogram.record(1.5);
  histogram.record(10, 3);
  histogram.record(100_000_000);
  const { bounds, counts, count, sum } = histogram.snapshot();
  expect(bounds).toBe(BOUNDS);
  expect(counts).toHaveLength(BOUNDS.length + 1);
  expect(Object.fromEntries([...counts.entries()].filter(([, each]) => each > 0))).toEqual({
    0: 2,
    1: 1,
    3: 3,
    [BOUNDS.length]: 1,
  });
  expect({ count, sum }).toEqual({ count: 7, sum: 1 + 1.5 + 30 + 100_000_000 });
});

test("unknown values are left out, and a snapshot does not change", () => {
  const histogram = new Histogram();
  const before = histogram.snapshot();
  for (const duration of [NaN, Infinity, -Infinity]) histogram.record(duration);
  expect(histogram.snapshot()).toEqual(before);
  histogram.record(1);
  expect(before.count).toBe(0);
  expect(before.counts).not.toContain(1);
});
