import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CHECKS } from "../../../src/tools/doctor/checks/finding.ts";
import { TRIALS } from "../../../src/tools/doctor/looks/access-report.ts";
import { readPage, ROOT, tableUnder, wordsIn } from "./pages.ts";

// What the pages say about the doctor, compared with the doctor in both directions.

const WATCHING = readPage("docs/operations/watching.md");
const SETTING_UP = readPage("docs/operations/setting-up.md");
const ERRORS = readPage("docs/guide/errors.md");

test("every check is in the list of what the doctor looks at, and no other", () => {
  const list = /^It looks at\n(.*?)^What to do/ms.exec(WATCHING.text)?.[1];
  // What stands in parentheses explains a check.
  expect(wordsIn(list?.replaceAll(/\([^)]*\)/g, ""))).toEqual([...CHECKS]);
});

test("the doctor tries every command of the access rules", () => {
  const block = /## Access rules.*?```\n(.*?)```/s.exec(SETTING_UP.text)?.[1] ?? "";
  const granted = block
    .split(/\s+/)
    .flatMap((word) => (word.startsWith("+") ? [word.slice(1)] : []));
  // The doctor needs these before it can ask anything, tries them in another way, or can do without them.
  const others = ["hello", "auth", "select", "info", "subscribe", "pubsub", "scan", "type"];
  const tried = [...TRIALS.map(({ rule }) => rule.replace(/^(x\w+)\|.*/, "$1")), ...others];
  expect([...new Set(tried)].toSorted()).toEqual(granted.toSorted());
});

test("every error code has a row that says what to do", () => {
  const source = readFileSync(`${ROOT}src/errors.ts`, "utf8");
  const union = /type ErrorCode =(.*?);/s.exec(source)?.[1] ?? "";
  const codes = Array.from(union.matchAll(/"(\w+)"/g), ([, code = ""]) => code);
  const rows = tableUnder(ERRORS, "Codes").map(([code]) => wordsIn(code)[0] ?? "");
  expect(codes.length).toBeGreaterThan(5);
  expect([...new Set(rows)].toSorted()).toEqual(codes.toSorted());
  for (const cells of tableUnder(ERRORS, "Codes")) expect(cells.at(-1)).not.toBe("");
});
