import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SweepRhythm } from "../../../src/delayed/transfer/sweep-rhythm.ts";
import { Steps } from "../../../src/time/steps.ts";

let turns: number;
let rhythm: SweepRhythm;

beforeEach(() => {
  vi.useFakeTimers();
  // No spread.
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  turns = 0;
  rhythm = new SweepRhythm(() => turns++, new Steps(), { ordinary: 1000, deaf: 100 });
});

afterEach(() => {
  rhythm.close();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** How often a sweep comes within four seconds. */
function turnsInFour(): number {
  turns = 0;
  vi.advanceTimersByTime(4000);
  return turns;
}

test("comes half as often on shared duty or off duty, and often while the task is deaf", () => {
  expect(turnsInFour()).toBe(4);
  rhythm.setDuty("shared");
  expect([turnsInFour(), rhythm.isOnDuty]).toEqual([2, true]);
  rhythm.setDuty("off");
  expect([turnsInFour(), rhythm.isOnDuty]).toEqual([2, false]);
  rhythm.setDuty("alone");
  rhythm.setDeaf(true);
  expect([turnsInFour(), rhythm.isDeaf]).toEqual([40, true]);
  rhythm.setDeaf(false);
  expect([turnsInFour(), rhythm.isDeaf]).toEqual([4, false]);
});

test("off duty it cannot notice that the task is deaf", () => {
  rhythm.setDeaf(true);
  rhythm.setDuty("off");
  expect(rhythm.isDeaf).toBe(false);
  rhythm.setDeaf(true);
  expect([turnsInFour(), rhythm.isDeaf]).toEqual([2, false]);
  rhythm.setDuty("alone");
  expect([turnsInFour(), rhythm.isDeaf]).toEqual([4, false]);
});

test("a message that is heard does not put off the next sweep", () => {
  for (let i = 0; i < 10; i++) {
    vi.advanceTimersByTime(400);
    rhythm.setDeaf(false);
  }
  expect(turns).toBe(4);
});

test("never comes again once it is closed", () => {
  rhythm.close();
  rhythm.setDuty("off");
  rhythm.setDuty("alone");
  rhythm.setDeaf(true);
  expect(turnsInFour()).toBe(0);
});
