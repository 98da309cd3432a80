import { getEventListeners } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { sleep } from "../../../src/time/sleep.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Starts to sleep. Returns a function that tells whether the sleep has ended. */
function startSleep(duration: number, signal?: AbortSignal): () => boolean {
  let hasEnded = false;
  void sleep(duration, signal).then(() => (hasEnded = true));
  return () => hasEnded;
}

test.each([10, 30 * 86_400_000])("ends after %i ms, and no earlier", async (duration) => {
  const { signal } = new AbortController();
  const hasEnded = startSleep(duration, signal);
  await vi.advanceTimersByTimeAsync(duration - 1);
  expect(hasEnded()).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(hasEnded()).toBe(true);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("ends when the signal is aborted, and leaves no timer and no listener behind", async () => {
  const controller = new AbortController();
  const hasEnded = startSleep(60_000, controller.signal);
  controller.abort();
  await vi.advanceTimersByTimeAsync(0);
  expect(hasEnded()).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
});

test("ends at once if the signal is aborted already, or the duration is over", async () => {
  const ends = [startSleep(60_000, AbortSignal.abort()), startSleep(-1)];
  await vi.advanceTimersByTimeAsync(0);
  expect(ends.map((hasEnded) => hasEnded())).toEqual([true, true]);
});
