import { expect, test } from "vitest";
import { formatTable, toJson } from "../../../src/tools/cli/session/output.ts";
import { formatCount } from "../../../src/tools/view/words.js";

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

test("a count agrees with its noun", () => {
  expect([0, 1, 2000].map((n) => formatCount(n, "message"))).toEqual([
    "0 messages",
    "1 message",
    "2,000 messages",
  ]);
});

test("JSON is one line that cannot act on a terminal, and parses to what was written", () => {
  const value = { text: "\u001b\u202e\u{e0001}é😀\n", at: Infinity };
  const text = toJson(value);
  expect(text).toMatch(/^[^\p{Cc}\p{Cf}]*$/u);
  expect(JSON.parse(text)).toEqual({ ...value, at: "Infinity" });
});
