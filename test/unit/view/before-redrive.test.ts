import { expect, test } from "vitest";
import { countBeforeRedrive, type MessageState } from "../../../src/tools/view/sighting.ts";

test.each<[failed: number[], attempts: number, state: MessageState, before: number]>([
  [[], 0, "delayed", 0],
  [[1, 2, 3], 3, "retrying", 0],
  [[1, 2, 3, 4], 0, "retrying", 4],
  [[1, 2, 3, 4, 1], 1, "retrying", 4],
  [[1, 1, 1], 1, "dead", 2],
  [[1], 1, "in flight", 1],
  [[1, 2], 3, "in flight", 0],
  [[7, 8, 1, 3], 3, "dead", 2],
])(
  "failures %j after %i attempts, %s: %i were before the redrive",
  (failed, attempts, state, before) => {
    const failures = failed.map((attempt) => ({ attempt, at: 1, reason: "" }));
    expect(countBeforeRedrive({ failures, attempts, state })).toBe(before);
  },
);

test("a message that is held back has no attempt under way", () => {
  const failures = [1, 2].map((attempt) => ({ attempt, at: 1, reason: "" }));
  const seen = { failures, attempts: 2, state: "in flight", heldBackUntil: 5 } as const;
  expect(countBeforeRedrive(seen)).toBe(0);
});
