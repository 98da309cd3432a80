import { expect, test } from "vitest";
import { parseDuration } from "../../../src/tools/cli/session/arguments.ts";
import { formatDistance, formatDuration } from "../../../src/tools/cli/session/format-time.ts";

test.each([
  ["500ms", 500],
  ["1.5s", 1500],
  ["1h30m", 5_400_000],
  ["7d", 604_800_000],
  ["2w", 1_209_600_000],
  ["1w12h", 648_000_000],
])("%s is %i ms", (text, milliseconds) => {
  expect(parseDuration("--in", text)).toBe(milliseconds);
});

test.each(["", "15", "m", "-5m", "5 m", "1h-", "1y", "2 weeks"])("%j is not a duration", (text) => {
  expect(() => parseDuration("--in", text)).toThrow("--in must be a duration such as");
});

test.each([
  [0, "0ms"],
  [1240, "1.2s"],
  [59_999, "59s"],
  [3_600_000, "1h"],
  [3_661_000, "1h 1m"],
  [86_700_000, "1d"],
  [90_061_000, "1d 1h"],
  [1_209_600_000, "14d"],
  [Infinity, "forever"],
])("%i ms is printed as %s", (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});

test("an instant is printed relative to another", () => {
  expect(formatDistance(61_000, 1000)).toBe("in 1m");
  expect(formatDistance(1000, 61_000)).toBe("1m ago");
  expect(formatDistance(1000, 1500)).toBe("now");
  expect(formatDistance(Infinity, 1500)).toBe("never");
});
