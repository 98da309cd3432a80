import { expect, test } from "vitest";
import {
  destinationOf,
  formatFact,
  isLater,
  isMoved,
  MAX_EPOCH,
  ORDINARY,
  parseFact,
  partitionsOf,
  sourceOf,
  type Fact,
} from "../../../src/partitions/ring/fact.ts";
import { tableOf } from "../../../src/partitions/ring/ring.ts";
import { BUCKET_COUNT } from "../../../src/queue/message/bucket.ts";

const buckets = Array.from({ length: BUCKET_COUNT }, (_, i) => i);
const stable: Fact = { epoch: 3, to: 8, from: 8, state: "stable", servers: 1 };
const growing: Fact = { epoch: 4, to: 9, from: 8, state: "moving", servers: 2 };
const shrinking: Fact = { epoch: 5, to: 2, from: 8, state: "holding", servers: 1 };
const takingIn: Fact = { epoch: 1, to: 4, from: 0, state: "moving", servers: 1 };

test.each([
  ["3:8:8:stable:1", stable],
  ["4:9:8:moving:2", growing],
  ["5:2:8:holding:1", shrinking],
  ["1:4:0:moving:1", takingIn],
  [
    `${MAX_EPOCH}:256:1:moving:256`,
    { epoch: MAX_EPOCH, to: 256, from: 1, state: "moving", servers: 256 },
  ],
] as const)("%s is read and written", (text, fact) => {
  expect(parseFact(text)).toEqual(fact);
  expect(formatFact(fact)).toBe(text);
});

test.each([
  "",
  "3:8:8:stable",
  "3:8:8:stable:1:1",
  "3:8:8:stable:1\n",
  " 3:8:8:stable:1",
  "0:8:8:stable:1",
  `${MAX_EPOCH + 1}:8:8:stable:1`,
  "03:8:8:stable:1",
  "3.5:8:8:stable:1",
  "-3:8:8:stable:1",
  "1e3:8:8:stable:1",
  "3:0:0:stable:1",
  "3:0:8:moving:1",
  "3:257:8:moving:1",
  "3:8:257:moving:1",
  "3:8:9:stable:1",
  "3:8:0:stable:1",
  "3:8:8:moving:1",
  "3:8:8:holding:1",
  "3:8:4:paused:1",
  "3:8:8:stable:0",
  "3:8:8:stable:257",
])("%j is no fact", (text) => {
  expect(parseFact(text)).toBeUndefined();
});

test("the fact with the higher epoch is the later one", () => {
  expect(isLater(growing, stable)).toBe(true);
  expect(isLater(stable, growing)).toBe(false);
  expect(isLater(stable, stable)).toBe(false);
  expect(isLater({ ...stable, epoch: 10 }, { ...stable, epoch: 9 })).toBe(true);
});

test("every partition that may hold messages counts", () => {
  expect([stable, growing, shrinking, takingIn].map(partitionsOf)).toEqual([8, 9, 8, 4]);
});

test("in a stable queue a bucket has a destination and no source", () => {
  expect(buckets.map((bucket) => destinationOf(stable, bucket))).toEqual([...tableOf(8)]);
  expect(buckets.some((bucket) => sourceOf(stable, bucket) !== undefined)).toBe(false);
  expect(buckets.some((bucket) => isMoved(stable, bucket))).toBe(false);
});

test.each([
  [growing, 113],
  [shrinking, 768],
])("%o: buckets with another partition than before are moved", (fact, moved) => {
  expect(buckets.map((bucket) => destinationOf(fact, bucket))).toEqual([...tableOf(fact.to)]);
  expect(buckets.map((bucket) => sourceOf(fact, bucket))).toEqual([...tableOf(fact.from)]);
  expect(buckets.filter((bucket) => isMoved(fact, bucket))).toHaveLength(moved);
});

test("while the ordinary queue is taken in, every bucket has it as its source", () => {
  expect(buckets.every((bucket) => sourceOf(takingIn, bucket) === ORDINARY)).toBe(true);
  expect(buckets.every((bucket) => isMoved(takingIn, bucket))).toBe(true);
});
