import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { BusyWait } from "../../../src/time/busy-wait.ts";
import { DeadlineTimer } from "../../../src/time/deadline-timer.ts";
import { queueTime } from "../../../src/time/runtime.ts";

const DAY = 86_400_000;
const onDue = vi.fn();
let timer: DeadlineTimer;
/** The lengths of all timeouts that were set. */
let timeouts: number[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  timeouts = [];
  const { setTimeout } = globalThis;
  vi.spyOn(globalThis, "setTimeout").mockImplementation(((callback: () => void, delay: number) => {
    // Node would fire it at once, over and over.
    if (delay > 2 ** 31 - 1) throw new RangeError(`a timeout of ${delay} ms`);
    timeouts.push(delay);
    return setTimeout(callback, delay);
  }) as typeof setTimeout);
  onDue.mockReset();
  timer = new DeadlineTimer(onDue);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** An instant so many milliseconds from now. */
const inMs = (delay: number) => performance.now() + delay;

test("fires at its deadline, once, and not before", () => {
  timer.reset(inMs(1_000));
  vi.advanceTimersByTime(999);
  expect(onDue).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onDue).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(DAY);
  expect(onDue).toHaveBeenCalledTimes(1);
});

test("is not armed at first, or after it has fired", () => {
  expect(vi.getTimerCount()).toBe(0);
  timer.reset(inMs(10));
  vi.advanceTimersByTime(10);
  expect(vi.getTimerCount()).toBe(0);
});

test("a reset moves it either way", () => {
  timer.reset(inMs(50));
  timer.reset(inMs(100));
  vi.advanceTimersByTime(99);
  expect(onDue).not.toHaveBeenCalled();
  timer.reset(inMs(500));
  timer.reset(inMs(20));
  vi.advanceTimersByTime(20);
  expect(onDue).toHaveBeenCalledTimes(1);
});

test.each(["clear", "reset to Infinity"] as const)("%s disarms it", (how) => {
  timer.reset(inMs(100));
  if (how === "clear") timer.clear();
  else timer.reset(Infinity);
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(DAY);
  expect(onDue).not.toHaveBeenCalled();
});

test("can be armed again by its own callback", () => {
  onDue.mockImplementationOnce(() => timer.reset(inMs(100)));
  timer.reset(inMs(100));
  vi.advanceTimersByTime(100);
  expect(onDue).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(99);
  expect(onDue).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1);
  expect(onDue).toHaveBeenCalledTimes(2);
});

test.each([0, -1, -DAY])(
  "a deadline %d ms from now fires in the next turn, not in this",
  (delay) => {
    timer.reset(inMs(delay));
    expect(onDue).not.toHaveBeenCalled();
    vi.advanceTimersByTime(0);
    expect(onDue).toHaveBeenCalledTimes(1);
  },
);

test("fractions of a millisecond are rounded up", () => {
  timer.reset(inMs(10.25));
  vi.advanceTimersByTime(10);
  expect(onDue).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onDue).toHaveBeenCalledTimes(1);
});

test("sleeps 60 days in pieces that Node.js can count", () => {
  timer.reset(inMs(60 * DAY));
  vi.advanceTimersByTime(60 * DAY - 1);
  expect(onDue).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onDue).toHaveBeenCalledTimes(1);
  expect(timeouts.length).toBeGreaterThan(1);
  expect(timeouts.reduce((sum, timeout) => sum + timeout)).toBe(60 * DAY);
});

test("a deadline beyond every calendar never fires", () => {
  timer.reset(8.99e15);
  vi.advanceTimersByTime(100 * DAY);
  expect(onDue).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(1);
});

test("while it sleeps in pieces, it can still be moved earlier", () => {
  timer.reset(inMs(60 * DAY));
  vi.advanceTimersByTime(30 * DAY);
  timer.reset(inMs(5));
  vi.advanceTimersByTime(5);
  expect(onDue).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(0);
});

test("a timeout that fires early sleeps on until the deadline", () => {
  timer.reset(inMs(100));
  // Node fires up to a millisecond early: the clock is behind the time that the timeouts have counted.
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() - 0.7);
  vi.advanceTimersByTime(100);
  expect(onDue).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(1);
  clock.mockRestore();
  vi.advanceTimersByTime(1);
  expect(onDue).toHaveBeenCalledTimes(1);
});

describe("a punctual timer", () => {
  let turns: (() => void)[];

  /** Lets so much time pass within one turn of the event loop, and ends the turn. */
  const turn = (ms: number) => {
    vi.advanceTimersByTime(ms);
    for (const callback of turns.splice(0)) callback();
  };

  beforeEach(() => {
    turns = [];
    vi.spyOn(globalThis, "setImmediate").mockImplementation(((callback: () => void) => {
      turns.push(callback);
      return callback;
    }) as unknown as typeof setImmediate);
    vi.spyOn(globalThis, "clearImmediate").mockImplementation(((callback: () => void) => {
      turns = turns.filter((other) => other !== callback);
    }) as unknown as typeof clearImmediate);
    timer = new DeadlineTimer(onDue, queueTime, new BusyWait(1000));
  });

  test("wakes 2 ms early and looks in each turn, and is not due before its deadline", () => {
    timer.reset(inMs(100));
    expect(timeouts).toEqual([98]);
    turn(98);
    for (let i = 0; i < 19; i++) turn(0.1);
    expect(onDue).not.toHaveBeenCalled();
    turn(0.1);
    turn(0.01);
    expect(onDue).toHaveBeenCalledTimes(1);
    expect(turns).toEqual([]);
  });

  describe("whose last deadline was a moment ago", () => {
    beforeEach(() => {
      timer.reset(inMs(100));
      turn(98);
      turn(2);
      expect(onDue).toHaveBeenCalledTimes(1);
      timeouts = [];
    });

    test("looks in each turn of the last half millisecond only", () => {
      timer.reset(inMs(8.4));
      expect(timeouts).toEqual([8]);
      turn(8);
      expect(turns).toHaveLength(1);
      turn(0.3);
      expect(onDue).toHaveBeenCalledTimes(1);
      turn(0.1);
      turn(0.01);
      expect(onDue).toHaveBeenCalledTimes(2);
    });

    test("is rather late by half a millisecond than that it looks longer", () => {
      timer.reset(inMs(7.6));
      expect(timeouts).toEqual([8]);
      turn(8);
      expect(onDue).toHaveBeenCalledTimes(2);
    });

    test("is due in the next turn if the deadline has passed", () => {
      timer.reset(inMs(-1));
      expect(timeouts).toEqual([]);
      expect(onDue).toHaveBeenCalledTimes(1);
      turn(0);
      expect(onDue).toHaveBeenCalledTimes(2);
    });
  });

  test("looks as long as its budget allows, and is an ordinary one when that is spent", () => {
    // 3 ms of each second: of 100 ms 0.3, and three that were saved.
    timer = new DeadlineTimer(onDue, queueTime, new BusyWait(3));
    const slept: number[] = [];
    for (let i = 0; i < 20; i++) {
      timeouts = [];
      timer.reset(inMs(100.5));
      slept.push(...timeouts);
      turn(timeouts[0] ?? NaN);
      if (onDue.mock.calls.length === i) turn(1.5);
    }
    expect(onDue).toHaveBeenCalledTimes(20);
    expect(slept.slice(0, 2)).toEqual([99, 100]);
    expect(slept.at(-1)).toBe(101);
    // A second later it has gained as much.
    vi.advanceTimersByTime(1000);
    timeouts = [];
    timer.reset(inMs(100.5));
    expect(timeouts).toEqual([99]);
  });

  test("never looks without a budget", () => {
    timer = new DeadlineTimer(onDue, queueTime, new BusyWait(0));
    timer.reset(inMs(99.5));
    expect(timeouts).toEqual([100]);
    turn(100);
    expect(onDue).toHaveBeenCalledTimes(1);
    expect(turns).toEqual([]);
    // But one that has passed is due in the next turn.
    timer.reset(inMs(-0.1));
    expect(timeouts).toEqual([100]);
    turn(0);
    expect(onDue).toHaveBeenCalledTimes(2);
  });

  test.each(["clear", "reset"] as const)("%s ends the looking", (how) => {
    timer.reset(inMs(100));
    turn(99);
    expect(turns).toHaveLength(1);
    if (how === "clear") timer.clear();
    else timer.reset(inMs(50));
    expect(turns).toEqual([]);
    turn(10);
    expect(onDue).not.toHaveBeenCalled();
  });
});
