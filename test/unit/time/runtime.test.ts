import { afterEach, expect, test, vi } from "vitest";
import { performance, replaceRuntime, setTimeout } from "../../../src/time/runtime.ts";
import { followGlobals } from "../../helpers/follow-globals.ts";

afterEach(() => {
  vi.useRealTimers();
  followGlobals();
});

test("fake timers that are installed later change neither timers nor the clock", async () => {
  replaceRuntime();
  vi.useFakeTimers({ toFake: ["setTimeout", "performance", "Date"] });
  const startedAt = performance.now();
  await new Promise<void>((resolve) => setTimeout(resolve, 5));
  expect(performance.now() - startedAt).toBeGreaterThan(3);
});
