import { afterEach, expect, test, vi } from "vitest";
import { queueTime, replaceRuntime } from "../../../src/time/runtime.ts";
import { followGlobals } from "../../helpers/follow-globals.ts";

afterEach(() => {
  vi.useRealTimers();
  followGlobals();
});

test("fake timers that are installed later change neither timers nor the clock", async () => {
  replaceRuntime();
  vi.useFakeTimers({ toFake: ["setTimeout", "performance", "Date"] });
  const startedAt = queueTime.now();
  await new Promise<void>((resolve) => queueTime.setTimeout(resolve, 5));
  expect(queueTime.now() - startedAt).toBeGreaterThan(3);
});
