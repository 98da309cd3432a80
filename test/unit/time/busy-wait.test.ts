import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BusyWait } from "../../../src/time/busy-wait.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

test("what is spent is gained again, and saved for a second at most", () => {
  const budget = new BusyWait(10);
  budget.spend(9);
  expect(budget.isAllowed).toBe(true);
  budget.spend(3);
  expect(budget.isAllowed).toBe(false);
  vi.advanceTimersByTime(190);
  expect(budget.isAllowed).toBe(false);
  vi.advanceTimersByTime(20);
  expect(budget.isAllowed).toBe(true);
  vi.advanceTimersByTime(60_000);
  expect(budget.isAllowed).toBe(true);
  budget.spend(10.1);
  expect(budget.isAllowed).toBe(false);
});

test("0 allows nothing, 1,000 everything", () => {
  expect(new BusyWait(0).isAllowed).toBe(false);
  const always = new BusyWait(1000);
  for (let i = 0; i < 100; i++) {
    expect(always.isAllowed).toBe(true);
    vi.advanceTimersByTime(1);
    always.spend(1);
  }
});

test.each([1, 2, 5, 10, 50])(
  "of deadlines %d ms apart, the checks spend the share that is allowed",
  (gap) => {
    const early = new BusyWait(10).startBefore(gap);
    // Sleeps are of whole milliseconds, so what is left of the last one is anything between 0 and 1.
    const rests = Array.from({ length: 1000 }, (_, i) => i / 1000);
    const waits = rests.map((rest) => (rest <= early ? rest : 0));
    const spent = waits.reduce((sum, wait) => sum + wait) / 1000;
    expect(spent / gap).toBeCloseTo(0.01, 3);
  },
);
