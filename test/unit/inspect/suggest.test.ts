import { expect, test } from "vitest";
import { suggest } from "../../../src/tools/inspect/text.ts";

test.each([
  ["lsit", "list"],
  ["deliver", "deliver-now"],
  ["STATS", "stats"],
  ["frobnicate", undefined],
])("%s suggests %s", (word, meant) => {
  expect(suggest(word, ["queues", "list", "stats", "deliver-now"])).toBe(meant);
});
