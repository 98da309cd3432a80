import { afterEach, describe, expect, test, vi } from "vitest";
import {
  checkRetry,
  DEFAULT_RETRY,
  type RetryOptions,
} from "../../../src/reliable/consuming/retry-ladder.ts";

const MAX = "946728000000 ms (30 years)";
const error = new Error("no answer");

afterEach(() => {
  vi.restoreAllMocks();
});

/** The pauses after the first attempts. */
function pauses(retry: RetryOptions | undefined, count: number): (number | undefined)[] {
  const ladder = checkRetry(retry);
  return Array.from({ length: count }, (_, i) => ladder.pauseAfter(i + 1, error));
}

describe("an array", () => {
  test("is taken step by step, and its last pause repeats", () => {
    expect(pauses([0, 120, 0.5], 5)).toEqual([0, 120, 0.5, 0.5, 0.5]);
    expect(checkRetry([1, 2]).pauseAfter(1e15, error)).toBe(2);
  });

  test("is copied at once", () => {
    const steps = [1, 2];
    const ladder = checkRetry(steps);
    steps.splice(0, 2, -1);
    expect([ladder.pauseAfter(1, error), ladder.pauseAfter(2, error)]).toEqual([1, 2]);
  });
});

describe("a backoff", () => {
  test("doubles up to an hour by default", () => {
    const seconds = pauses({ initial: 1_000 }, 14).map((pause = NaN) => pause / 1_000);
    expect(seconds).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 3_600, 3_600]);
  });

  test.each<[RetryOptions, number[]]>([
    [{ initial: 10, factor: 3, max: 100 }, [10, 30, 90, 100, 100]],
    [{ initial: 10, factor: 1 }, [10, 10, 10]],
    [{ initial: 0, factor: 2 }, [0, 0, 0]],
    [{ initial: 7, max: 7 }, [7, 7]],
    [{ initial: 7_200_000 }, [7_200_000, 7_200_000]],
    [{ initial: 10, factor: undefined, max: undefined, jitter: undefined } as never, [10, 20]],
  ])("%j", (retry, expected) => {
    expect(pauses(retry, expected.length)).toEqual(expected);
  });

  test.each([0, 1])("from %d ms is finite, however many attempts there were", (initial) => {
    const pause = checkRetry({ initial, factor: 1e6 }).pauseAfter(1_000_000, error);
    expect(pause).toBe(initial === 0 ? 0 : 3_600_000);
  });

  test("is shorter by a random share", () => {
    const random = vi.spyOn(Math, "random");
    const retry = { initial: 1_000, jitter: 0.25 };
    for (const [value, expected] of [
      [0, [1_000, 2_000]],
      [0.5, [875, 1_750]],
      [1, [750, 1_500]],
    ] as const) {
      random.mockReturnValue(value);
      expect(pauses(retry, 2)).toEqual(expected);
    }
  });

  test("draws each pause anew", () => {
    expect(new Set(pauses({ initial: 1_000, factor: 1, jitter: 1 }, 20)).size).toBeGreaterThan(1);
  });

  test("is read once", () => {
    const retry = { initial: 5, factor: 2 };
    const ladder = checkRetry(retry);
    retry.initial = -1;
    expect(ladder.pauseAfter(2, error)).toBe(10);
  });
});

describe("a function", () => {
  test("gets the attempt and the error, and its undefined means dead", () => {
    const seen: unknown[] = [];
    const ladder = checkRetry((attempt: number, why: unknown) => {
      seen.push([attempt, why]);
      return attempt < 3 ? attempt * 100 : undefined;
    });
    expect([1, 2, 3].map((attempt) => ladder.pauseAfter(attempt, error))).toEqual([
      100,
      200,
      undefined,
    ]);
    expect(seen).toEqual([
      [1, error],
      [2, error],
      [3, error],
    ]);
  });

  test.each<[unknown, Error]>([
    [
      null,
      new TypeError("the pause that retry returns must be a number of milliseconds, got null"),
    ],
    [
      "5",
      new TypeError(
        "the pause that retry returns must be a number of milliseconds, got string; convert it with Number",
      ),
    ],
    [
      Promise.resolve(5),
      new TypeError("the pause that retry returns must be a number of milliseconds, got a Promise"),
    ],
    [NaN, new RangeError(`the pause that retry returns must be between 0 and ${MAX}, got NaN`)],
    [-1, new RangeError(`the pause that retry returns must be between 0 and ${MAX}, got -1`)],
    [
      Infinity,
      new RangeError(`the pause that retry returns must be between 0 and ${MAX}, got Infinity`),
    ],
  ])("must not return %s", (value, expected) => {
    const ladder = checkRetry(() => value);
    expect(() => ladder.pauseAfter(1, error)).toThrow(expected);
  });

  test("must not be async; its rejection does not end the process", async () => {
    const unhandled: unknown[] = [];
    const listener = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", listener);
    const ladder = checkRetry(() => Promise.reject(error));
    expect(() => ladder.pauseAfter(1, error)).toThrow(TypeError);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    process.off("unhandledRejection", listener);
    expect(unhandled).toEqual([]);
  });

  test("that throws makes pauseAfter throw", () => {
    const ladder = checkRetry(() => {
      throw error;
    });
    expect(() => ladder.pauseAfter(1, error)).toThrow(error);
  });
});

test("no option means the default ladder", () => {
  expect(DEFAULT_RETRY).toEqual({ initial: 1_000, factor: 2, max: 3_600_000, jitter: 0.2 });
  vi.spyOn(Math, "random").mockReturnValue(1);
  expect(pauses(undefined, 3)).toEqual([800, 1_600, 3_200]);
  expect(pauses(DEFAULT_RETRY, 3)).toEqual([800, 1_600, 3_200]);
});

describe("is refused at once:", () => {
  test.each<[unknown, Error]>([
    [[], new RangeError("retry must have at least one pause, got []")],
    [[1, -5], new RangeError(`retry[1] must be between 0 and ${MAX}, got -5`)],
    [[Infinity], new RangeError(`retry[0] must be between 0 and ${MAX}, got Infinity`)],
    [["1s"], new TypeError("retry[0] must be a number of milliseconds, got string")],
    [Array(1), new TypeError("retry[0] must be a number of milliseconds, got undefined")],
    ...[null, "1s", 5, true].map((value): [unknown, Error] => [
      value,
      new TypeError(
        `retry must be an array of milliseconds, an object with initial, or a function, got ${
          value === null ? "null" : typeof value
        }`,
      ),
    ]),
    [{}, new TypeError("retry.initial must be a number of milliseconds, got undefined")],
    [{ initial: -1 }, new RangeError(`retry.initial must be between 0 and ${MAX}, got -1`)],
    [
      { initial: 1, delay: 2 },
      new TypeError(
        'retry option must be one of initial, factor, max, jitter, got "delay"; did you mean initial?',
      ),
    ],
    [{ initial: 1, factor: "2" }, new TypeError("retry.factor must be a number, got string")],
    ...[0.9, NaN, Infinity].map((factor): [unknown, Error] => [
      { initial: 1, factor },
      new RangeError(`retry.factor must be between 1 and 1000000, got ${factor}`),
    ]),
    [{ initial: 1, max: NaN }, new RangeError(`retry.max must be between 0 and ${MAX}, got NaN`)],
    [
      { initial: 10, max: 9 },
      new RangeError("retry.max must be at least retry.initial (10 ms), got 9"),
    ],
    ...[-0.1, 1.1, NaN].map((jitter): [unknown, Error] => [
      { initial: 1, jitter },
      new RangeError(`retry.jitter must be between 0 and 1, got ${jitter}`),
    ]),
    [{ initial: 1, jitter: null }, new TypeError("retry.jitter must be a number, got object")],
  ])("%j", (value, expected) => {
    expect(() => checkRetry(value)).toThrow(expected);
  });
});
