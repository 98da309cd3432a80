import { expect, test } from "vitest";
import { parseDuration } from "../../../src/tools/cli/session/arguments.ts";
import {
  formatDistance,
  formatDuration,
  formatRoughDistance,
} from "../../../src/tools/view/words.js";

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
  [0, "0 ms"],
  [1240, "1.2 s"],
  [59_999, "59 s"],
  [3_600_000, "1 h"],
  [3_661_000, "1 h 1 min"],
  [86_700_000, "1 d"],
  [90_061_000, "1 d 1 h"],
  [1_209_600_000, "14 d"],
  [3_599_999, "59 min 59 s"],
  [12_000_000, "3 h 20 min"],
  [187_200_000, "2 d 4 h"],
  [Infinity, "forever"],
])("%i ms is printed as %s", (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});

test("an instant is printed relative to another", () => {
  expect(formatDistance(61_000, 1000)).toBe("in 1 min");
  expect(formatDistance(1000, 61_000)).toBe("1 min ago");
  expect(formatDistance(1000, 1500)).toBe("now");
  expect(formatDistance(Infinity, 1500)).toBe("never");
});

test("beside a clock that shows minutes, a distance has no seconds from a minute on", () => {
  const now = 1_000_000_000;
  const told = [0, 400, 8_300, 59_700, 61_000, 350_000, 3_590_000, 5_410_000, 90_061_000, -97_000];
  expect(told.map((distance) => formatRoughDistance(now + distance, now))).toEqual([
    "now",
    "now",
    "in 8 s",
    "in 1 min",
    "in 1 min",
    "in 6 min",
    "in 1 h",
    "in 1 h 30 min",
    "in 1 d 1 h",
    "2 min ago",
  ]);
  expect(formatRoughDistance(Infinity, now)).toBe("never");
});
