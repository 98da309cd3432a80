import { expect, test } from "vitest";
import { isLate } from "../../../src/tools/inspect/is-late.ts";

test("a message is late 5 s after its deadline", () => {
  expect(isLate(10_000, 14_999)).toBe(false);
  expect(isLate(10_000, 15_000)).toBe(true);
  expect(isLate(undefined, 15_000)).toBe(false);
});
