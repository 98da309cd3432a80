import { expect, test } from "vitest";
import { readAddresses, secretsOf } from "../../../src/cli/words/addresses.ts";
import { formatDistance, formatDuration, parseDuration } from "../../../src/cli/words/durations.ts";
import { toJson } from "../../../src/cli/printing/output.ts";
import { suggest } from "../../../src/cli/words/suggest.ts";
import { formatTable } from "../../../src/cli/printing/table.ts";
import { UsageError } from "../../../src/cli/words/usage-error.ts";

test.each([
  ["500ms", 500],
  ["1.5s", 1500],
  ["1h30m", 5_400_000],
  ["7d", 604_800_000],
])("%s are %i ms", (text, milliseconds) => {
  expect(parseDuration("--in", text)).toBe(milliseconds);
});

test.each(["", "15", "m", "-5m", "5 m", "1h-", "1w"])("%j is no duration", (text) => {
  expect(() => parseDuration("--in", text)).toThrow("--in must be a duration such as");
});

test.each([
  [0, "0ms"],
  [1240, "1.2s"],
  [59_999, "59s"],
  [3_600_000, "1h"],
  [3_661_000, "1h 1m"],
  [90_061_000, "1d 1h"],
  [Infinity, "for ever"],
])("%i ms are shown as %s", (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});

test("an instant is seen from another", () => {
  expect(formatDistance(61_000, 1000)).toBe("in 1m");
  expect(formatDistance(1000, 61_000)).toBe("1m ago");
  expect(formatDistance(1000, 1500)).toBe("now");
});

test.each([
  ["lsit", "list"],
  ["deliver", "deliver-now"],
  ["STATS", "stats"],
  ["frobnicate", undefined],
])("%s: %s is meant", (word, meant) => {
  expect(suggest(word, ["queues", "list", "stats", "deliver-now"])).toBe(meant);
});

test("a table escapes, aligns, and cuts what may be cut", () => {
  const columns = [
    { title: "ID" },
    { title: "N", align: "right" as const },
    { title: "KEY", canShrink: true },
  ];
  const rows = [
    ["a", "1", "a very long key of a message"],
    ["bb", "1,000", "\u001b[2J"],
  ];
  expect(formatTable(columns, rows, 24)).toEqual([
    "ID      N  KEY",
    "a       1  a very long…",
    String.raw`bb  1,000  \u{1b}[2J`,
  ]);
});

test("JSON is one line of which nothing acts on a terminal, and reads as what was written", () => {
  const value = { text: "\u001b\u202e\u{e0001}é😀\n", at: Infinity };
  const text = toJson(value);
  expect(text).toMatch(/^[^\p{Cc}\p{Cf}]*$/u);
  expect(JSON.parse(text)).toEqual({ ...value, at: "Infinity" });
});

test.each(["/abc", "/-1", "/1.5", "/1/2", "?db=x", "/%zz"])("%s names no database", (path) => {
  for (const isCluster of [false, true]) {
    expect(() => readAddresses([`redis://host${path}`], isCluster)).toThrow(UsageError);
  }
});

test("passwords of addresses are known, and are not shown", () => {
  const url = "redis://me:p%40ss:w@redis.internal:6380/2";
  expect(secretsOf([url])).toEqual(["p%40ss:w", "p@ss:w"]);
  expect(secretsOf(["redis://host/0?db=1&password=s%20t"])).toEqual(["s%20t", "s t"]);
  expect(readAddresses([url], false).shown).toBe("redis.internal:6380");
});
