import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Steps } from "../../../src/time/steps.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("timers that were set at different times are due at once", () => {
  const steps = new Steps();
  const due: number[] = [];
  for (let i = 0; i < 10; i++) {
    due.push(performance.now() + steps.until(1000));
    vi.advanceTimersByTime(90);
  }
  const first = due[0] as number;
  for (const at of due) expect((at - first) / 1000).toBeCloseTo(Math.round((at - first) / 1000), 6);
});

test("a timer that fires a little early waits for a whole period", () => {
  const steps = new Steps();
  vi.advanceTimersByTime(steps.until(1000) - 3);
  expect(steps.until(1000)).toBeGreaterThan(1000);
  expect(steps.until(1000)).toBeLessThan(1020);
  vi.advanceTimersByTime(100);
  expect(steps.until(1000)).toBeLessThan(1000);
});
