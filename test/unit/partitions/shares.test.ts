import { expect, test } from "vitest";
import { holdersOf, movers, sharesOf } from "../../../src/partitions/ring/shares.ts";

/** `count` members of one kind, starting with `from`. */
function members(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, i) => `host-${from + i}:4711`);
}

function countEach(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

const partitions = Array.from({ length: 64 }, (_, i) => i);

// Processes of all versions should agree on them, or work is done twice or by nobody.
test("the assignment is stable across releases", () => {
  expect(movers(["a", "b", "c", "d", "e"], 7, 3)).toEqual(["d", "a", "e"]);
  expect(holdersOf(["a", "b", "c"], 4)).toEqual(["b", "c", "a", "b"]);
});

test("neither the order of the members nor a duplicate matters", () => {
  const listed = members(5);
  const mixed = [...listed.toReversed(), listed[2]!];
  for (const p of partitions) expect(movers(mixed, p)).toEqual(movers(listed, p));
  expect(holdersOf(mixed, 64)).toEqual(holdersOf(listed, 64));
  expect(sharesOf(mixed, listed[1]!, 64, 3)).toEqual(sharesOf(listed, listed[1]!, 64, 3));
});

// The hashes of these two are equal.
test("members with equal scores are ordered by name", () => {
  expect(movers(["liquid", "costarring"], 0)).toEqual(["costarring", "liquid"]);
  expect(holdersOf(["liquid", "costarring"], 2)).toEqual(["costarring", "liquid"]);
});

test("each partition has two movers, and each member moves about equally many", () => {
  const listed = members(8);
  for (const p of partitions) expect(new Set(movers(listed, p)).size).toBe(2);
  const counts = [...countEach(partitions.flatMap((p) => movers(listed, p))).values()];
  expect(counts).toHaveLength(8);
  // 16 each; the standard deviation is 3.5.
  expect(Math.min(...counts)).toBeGreaterThan(5);
  expect(Math.max(...counts)).toBeLessThan(27);
});

test("with fewer members than movers, all of them move", () => {
  expect(movers([], 0)).toEqual([]);
  expect(movers(["a"], 0)).toEqual(["a"]);
});

test("a member that joins replaces some movers, and the others keep their partitions", () => {
  const [newcomer = "", ...before] = members(9);
  for (const p of partitions) {
    const others = movers([newcomer, ...before], p).filter((name) => name !== newcomer);
    expect(movers(before, p).slice(0, others.length)).toEqual(others);
  }
});

test("each partition is in the shares of the given number of members", () => {
  const listed = members(8);
  const shares = listed.map((self) => sharesOf(listed, self, 64, 3));
  for (const p of partitions) expect(shares.filter((share) => share.includes(p))).toHaveLength(3);
  expect(shares.every((share) => share.length > 10 && share.length < 40)).toBe(true);
});

test("no member is idle: not with more members than shares, nor before it is listed", () => {
  const listed = members(40);
  const shares = listed.map((self) => sharesOf(listed, self, 8, 3));
  expect(shares.every((share) => share.length > 0)).toBe(true);
  expect(new Set(shares.flat()).size).toBe(8);
  expect(sharesOf([], "a", 4, 3)).toEqual([0, 1, 2, 3]);
  expect(sharesOf(["b"], "a", 4, 1)).toEqual(sharesOf(["a", "b"], "a", 4, 1));
});

test.each([
  [1, 8],
  [3, 8],
  [4, 16],
  [5, 64],
  [20, 64],
  [20, 16],
  [50, 256],
])("%d members hold %d partitions evenly", (count, total) => {
  const listed = members(count);
  const holders = holdersOf(listed, total);
  const counts = countEach(holders);
  const held = listed.map((name) => counts.get(name) ?? 0);
  expect(holders).toHaveLength(total);
  expect(held.reduce((sum, n) => sum + n)).toBe(total);
  expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(1);
});

test("without members nothing is held", () => {
  expect(holdersOf([], 8)).toEqual([]);
});

// Without regard for the previous holders, nearly all would change hands.
test.each([
  [3, 8],
  [4, 16],
  [20, 16],
  [5, 64],
  [20, 64],
])("%d members, %d partitions: few change hands when one joins or leaves", (count, total) => {
  const joins = 20;
  let changed = 0;
  for (let i = 0; i < joins; i++) {
    const [newcomer = "", ...others] = members(count + 1, i * 100);
    const without = holdersOf(others, total);
    const joined = holdersOf([newcomer, ...others], total);
    changed += joined.filter((holder, partition) => holder !== without[partition]).length;
  }
  const share = Math.ceil(total / (count + 1));
  expect(changed / joins).toBeLessThan(share + total / 8);
});
