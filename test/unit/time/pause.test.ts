import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Pause } from "../../../src/time/pause.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Starts to wait. Returns a function that tells whether the wait has ended. */
function startWait(pause: Pause): () => boolean {
  let hasEnded = false;
  void pause.wait().then(() => (hasEnded = true));
  return () => hasEnded;
}

test("doubles from the least to the most, and stays there", () => {
  const pause = new Pause(100, 1_000);
  expect(Array.from({ length: 7 }, () => pause.take())).toEqual([
    100, 200, 400, 800, 1_000, 1_000, 1_000,
  ]);
});

test("is short again after a success", () => {
  const pause = new Pause(100, 1_000);
  pause.take();
  pause.take();
  pause.reset();
  expect([pause.take(), pause.take()]).toEqual([100, 200]);
});

test("waits for its length, longer each time", async () => {
  const pause = new Pause(100, 1_000);
  for (const length of [100, 200]) {
    const hasEnded = startWait(pause);
    await vi.advanceTimersByTimeAsync(length - 1);
    expect(hasEnded()).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(hasEnded()).toBe(true);
  }
});

test("a wait can be ended, and leaves no timer behind", async () => {
  const pause = new Pause(60_000, 60_000);
  const hasEnded = startWait(pause);
  pause.end();
  await vi.advanceTimersByTimeAsync(0);
  expect(hasEnded()).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test("ending without a wait does nothing, not even to later waits", async () => {
  const pause = new Pause(100, 1_000);
  pause.end();
  const hasEnded = startWait(pause);
  await vi.advanceTimersByTimeAsync(99);
  expect(hasEnded()).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(hasEnded()).toBe(true);
  pause.end();
});
