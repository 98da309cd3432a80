import { expect, test } from "vitest";
import { UnknownCounts } from "../../../src/reliable/consuming/router.ts";

test("counts by name, whatever the name is", () => {
  const counts = new UnknownCounts();
  expect(counts.entries.size).toBe(0);
  for (const name of ["a", "", "a", "__proto__", "constructor", ""]) counts.count(name);
  expect([...counts.entries]).toEqual([
    ["a", 2],
    ["", 2],
    ["__proto__", 1],
    ["constructor", 1],
  ]);
});

test("counts a thousand names, and the others together", () => {
  const counts = new UnknownCounts();
  for (let i = 0; i < 1_500; i++) counts.count(`name ${i}`);
  counts.count("name 999");
  counts.count("name 1000");
  expect(counts.entries.size).toBe(1_001);
  expect(counts.entries.get("name 999")).toBe(2);
  expect(counts.entries.get("name 1000")).toBeUndefined();
  expect(counts.entries.get("other")).toBe(501);
});

test("keeps no name longer than a legal key", () => {
  const counts = new UnknownCounts();
  counts.count("x".repeat(200));
  counts.count("x".repeat(201));
  expect([...counts.entries.values()]).toEqual([1, 1]);
  expect(counts.entries.get("other")).toBe(1);
});
