import { expect, test } from "vitest";
import {
  flowsOf,
  foldedLine,
  mergedFlows,
  totalFlows,
} from "../../../src/tools/view/samples/lines.ts";

type Line = readonly (number | undefined)[];

const unknown: Line = [undefined, undefined, undefined, undefined];

/** The past of four minutes. */
function pastWith(lines: Readonly<Record<string, Line>>) {
  const noted = { delayed: unknown, ready: unknown, inFlight: unknown, retries: unknown };
  const values = { ...noted, dead: unknown, finished: unknown, late: unknown, ...lines };
  return { from: 0, step: 60_000, values };
}

test("what became ready has finished, or there is more in the stream", () => {
  const stored = pastWith({ finished: [5, 5, 8, 0], ready: [2, 4, 0, 0], inFlight: [1, 1, 1, 2] });
  expect(flowsOf(stored).readied).toEqual([undefined, 7, 4, 1]);
});

test("numbers that Redis keeps rounded do not tell what came, those of this process do", () => {
  const numbers = pastWith({
    finished: [5, 5, 5, 5],
    ready: [9, 90, 900, 9],
    inFlight: [0, 0, 0, 0],
    dead: [1, 3, 40, 45],
  });
  expect(flowsOf(numbers)).toEqual({
    readied: unknown,
    failed: [undefined, 2, undefined, undefined],
  });
  const readied = [undefined, 86, 815, 0];
  const own = flowsOf(numbers, readied);
  expect(own).toEqual({ readied, failed: [undefined, 2, 37, 5] });
  expect(mergedFlows(flowsOf(numbers), own).failed).toEqual([undefined, 2, 37, 5]);
});

test("letters that go are no failures, and without letters there were none", () => {
  expect(flowsOf(pastWith({ dead: [0, 2, 1, 0] })).failed).toEqual([0, 2, 0, 0]);
});

test("a sum is unknown where one of the queues is, and a plain queue does not count", () => {
  const orders = pastWith({
    finished: [3, 3, 3, 3],
    ready: [0, 0, 1, 0],
    inFlight: [0, 0, 0, 0],
    dead: [0, 1, 1, 1],
  });
  const large = pastWith({
    finished: [undefined, undefined, 2, 2],
    ready: [0, 0, 99, 99],
    inFlight: [0, 0, 0, 0],
    dead: [0, 0, 0, 1],
  });
  const plain = pastWith({ dead: [0, 0, 0, 0] });
  const all = [orders, large, plain].map((past) => ({ values: past.values, flows: flowsOf(past) }));
  expect(totalFlows(all)).toEqual({
    readied: [undefined, 3, undefined, undefined],
    failed: [0, 1, 0, 1],
  });
  expect(totalFlows([])).toEqual({ readied: [], failed: [] });
});

test("a folded line has the mean of what is known", () => {
  expect(foldedLine([1, 3, undefined, 5, undefined, undefined], 3, true)).toEqual([
    2,
    5,
    undefined,
  ]);
  expect(foldedLine([], 96, true)).toEqual([]);
});
