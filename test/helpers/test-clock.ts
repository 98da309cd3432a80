import { onTestFinished } from "vitest";
import {
  testClock,
  type TestClock,
  type TestClockOptions,
} from "../../src/adapters/testing/index.ts";

/** A clock that is closed when the test has finished, after the clients that are made later. */
export async function newClock(options?: TestClockOptions): Promise<TestClock> {
  const clock = await testClock(options);
  onTestFinished(() => clock.close());
  return clock;
}

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
