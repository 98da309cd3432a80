import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Patience } from "../../../src/time/patience.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const forEver = new Promise(() => {});

/** The outcome of a wait, once it has one. */
function outcomeOf(waiting: Promise<boolean>): () => boolean | undefined {
  let outcome: boolean | undefined;
  void waiting.then((hasEnded) => (outcome = hasEnded));
  return () => outcome;
}

test("has no limit at first", async () => {
  const outcome = outcomeOf(new Patience().waitFor(forEver));
  await vi.advanceTimersByTimeAsync(365 * 86_400_000);
  expect(outcome()).toBeUndefined();
});

test("ends with the work, and leaves no timer behind", async () => {
  const patience = new Patience();
  patience.limit(1000);
  expect(await patience.waitFor(Promise.resolve())).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
  patience.limit(10);
  expect(vi.getTimerCount()).toBe(0);
});

test("ends at its limit, counted from when that was set", async () => {
  const patience = new Patience();
  patience.limit(100);
  await vi.advanceTimersByTimeAsync(60);
  const outcome = outcomeOf(patience.waitFor(forEver));
  await vi.advanceTimersByTimeAsync(35);
  expect(outcome()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(10);
  expect(outcome()).toBe(false);
});

test("of several limits the earliest holds", async () => {
  const patience = new Patience();
  const outcome = outcomeOf(patience.waitFor(forEver));
  patience.limit(1000);
  patience.limit(100);
  patience.limit(10_000);
  await vi.advanceTimersByTimeAsync(105);
  expect(outcome()).toBe(false);
});
