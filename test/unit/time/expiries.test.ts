import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Expiries } from "../../../src/time/expiries.ts";

let expiries: Expiries;
let over: string[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  expiries = new Expiries(100);
  over = [];
});

afterEach(() => {
  vi.useRealTimers();
});

const add = (name: string) => expiries.add(() => over.push(name));

test("each expires when its time is over, the oldest first", () => {
  add("a");
  vi.advanceTimersByTime(40);
  add("b");
  add("c");
  vi.advanceTimersByTime(59);
  expect(over).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(over).toEqual(["a"]);
  vi.advanceTimersByTime(39);
  expect(over).toEqual(["a"]);
  vi.advanceTimersByTime(1);
  expect(over).toEqual(["a", "b", "c"]);
});

test("a removed entry does not expire, and those behind it do", () => {
  const first = add("first");
  vi.advanceTimersByTime(10);
  add("second");
  expiries.remove(first);
  vi.advanceTimersByTime(99);
  expect(over).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(over).toEqual(["second"]);
});

test("all share one timer, which is cleared when none is left", () => {
  for (let i = 0; i < 1000; i++) expiries.remove(add(String(i)));
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(100);
  expect(vi.getTimerCount()).toBe(0);
  add("later");
  vi.advanceTimersByTime(100);
  expect(over).toEqual(["later"]);
});

test("one that is added while others expire gets its whole time", () => {
  expiries.add(() => add("next"));
  vi.advanceTimersByTime(100);
  vi.advanceTimersByTime(99);
  expect(over).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(over).toEqual(["next"]);
});

test("each tells when its time is over", () => {
  vi.advanceTimersByTime(5);
  expect(add("a").endsAt).toBe(performance.now() + 100);
});

describe("one that is on its way when its time is over", () => {
  let isOnItsWay: boolean;

  beforeEach(() => {
    isOnItsWay = true;
    expiries.add(
      () => over.push("late"),
      () => isOnItsWay,
    );
    vi.advanceTimersByTime(100);
    expect(over).toEqual([]);
  });

  test("expires once it is not", () => {
    vi.advanceTimersByTime(300);
    isOnItsWay = false;
    expect(over).toEqual([]);
    vi.advanceTimersByTime(100);
    expect(over).toEqual(["late"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("expires at ten times its length", () => {
    vi.advanceTimersByTime(899);
    expect(over).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(over).toEqual(["late"]);
  });

  test("keeps back no other, and can be removed", () => {
    const removed = expiries.add(
      () => over.push("removed"),
      () => true,
    );
    add("other");
    vi.advanceTimersByTime(100);
    expect(over).toEqual(["other"]);
    expiries.remove(removed);
    vi.advanceTimersByTime(2000);
    expect(over).toEqual(["other", "late"]);
  });
});
