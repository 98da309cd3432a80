import { expect, test } from "vitest";
import {
  activeOf,
  arrivingAt,
  destinationOf,
  formatDone,
  formatFact,
  isLater,
  leavingOf,
  MAX_EPOCH,
  ORDINARY,
  parseFact,
  partitionsOf,
  sourcesOf,
  type Fact,
} from "../../../src/partitions/ring/fact.ts";
import { tableOf } from "../../../src/partitions/ring/ring.ts";
import { BUCKET_COUNT } from "../../../src/queue/message/bucket.ts";

const buckets = Array.from({ length: BUCKET_COUNT }, (_, i) => i);
const stable: Fact = { epoch: 3, to: 8, from: 8, state: "stable", servers: 1 };
const growing: Fact = { epoch: 4, to: 9, from: 8, state: "moving", servers: 2 };
const shrinking: Fact = { epoch: 5, to: 2, from: 8, state: "holding", servers: 1 };
const takingIn: Fact = { epoch: 1, to: 4, from: 0, state: "moving", servers: 1 };
const scattered: Fact = { ...growing, from: 12, scattered: "any" };
const everywhere: Fact = { ...scattered, from: 9, state: "holding", scattered: "everywhere" };

test.each([
  ["3:8:8:stable:1", stable],
  ["4:9:8:moving:2", growing],
  ["5:2:8:holding:1", shrinking],
  ["1:4:0:moving:1", takingIn],
  ["4:9:12:moving:2:any", scattered],
  ["4:9:9:holding:2:everywhere", everywhere],
  [
    `${MAX_EPOCH}:256:1:moving:256`,
    { epoch: MAX_EPOCH, to: 256, from: 1, state: "moving", servers: 256 },
  ],
] as const)("%s is read and written", (text, fact) => {
  expect(parseFact(text)).toEqual(fact);
  expect(formatFact(fact)).toBe(text);
});

test("a partition with nothing left to migrate holds the same fact, done", () => {
  expect(formatDone(growing)).toBe("4:9:8:moving:2:done");
  expect(parseFact("4:9:8:moving:2:done")).toEqual(growing);
  expect(parseFact("4:9:12:moving:2:any:done")).toEqual(scattered);
});

test.each([
  "",
  "3:8:8:stable:1:done",
  "3:8:8:stable:1:any",
  "4:9:8:moving:1:anything",
  "4:9:8:moving:1:done:any",
  "4:9:0:moving:1:everywhere",
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
  const all = [stable, growing, shrinking, takingIn, scattered, everywhere];
  expect(all.map(partitionsOf)).toEqual([8, 9, 8, 4, 12, 9]);
});

test("in a stable queue a bucket has a destination and no source", () => {
  expect(buckets.map((bucket) => destinationOf(stable, bucket))).toEqual([...tableOf(8)]);
  expect(buckets.some((bucket) => sourcesOf(stable, bucket).length > 0)).toBe(false);
  expect(leavingOf(stable)).toEqual([]);
});

test.each([
  [growing, 113],
  [shrinking, 768],
])("%o: buckets with another partition than before are moved", (fact, moved) => {
  expect(buckets.map((bucket) => destinationOf(fact, bucket))).toEqual([...tableOf(fact.to)]);
  const before = tableOf(fact.from);
  for (const bucket of buckets) {
    const isMoved = before[bucket] !== destinationOf(fact, bucket);
    expect(sourcesOf(fact, bucket)).toEqual(isMoved ? [before[bucket]] : []);
  }
  expect(buckets.filter((bucket) => sourcesOf(fact, bucket).length > 0)).toHaveLength(moved);
  const left = new Set(buckets.flatMap((bucket) => sourcesOf(fact, bucket)));
  expect(leavingOf(fact)).toEqual([...left].toSorted((a, b) => a - b));
});

test.each([scattered, everywhere])("%o: a message may be in any partition", (fact) => {
  expect(leavingOf(fact)).toEqual(activeOf(fact));
  for (const bucket of buckets) {
    const here = destinationOf(fact, bucket);
    expect(sourcesOf(fact, bucket)).toEqual(activeOf(fact).filter((one) => one !== here));
  }
});

test("while the ordinary queue is taken in, every bucket has it as its source", () => {
  for (const bucket of buckets) expect(sourcesOf(takingIn, bucket)).toEqual([ORDINARY]);
  expect(leavingOf(takingIn)).toEqual([ORDINARY]);
});

test.each([
  ["growing", growing],
  ["shrinking", shrinking],
])("%s: messages arrive where their buckets were not before", (_, fact) => {
  for (const partition of activeOf(fact)) {
    const arriving = arrivingAt(fact, partition);
    const expected = buckets.map(
      (bucket) => destinationOf(fact, bucket) === partition && sourcesOf(fact, bucket).length > 0,
    );
    if (!expected.includes(true)) expect(arriving).toHaveLength(0);
    else expect(Array.from(arriving, (byte) => byte === 1)).toEqual(expected);
  }
  expect(arrivingAt(fact, fact === growing ? 8 : 0).includes(1)).toBe(true);
});

test.each([undefined, stable, takingIn, scattered, everywhere])(
  "no message counts as arriving by %j",
  (fact) => {
    for (const partition of [ORDINARY, 0, 3, 8]) {
      expect(arrivingAt(fact, partition)).toHaveLength(0);
    }
  },
);
