import { expect, test } from "vitest";
import { BUCKET_COUNT, bucketOfKey, hashOf } from "../../../src/queue/message/bucket.ts";
import {
  bucketOf,
  createId,
  sequenceIn,
  packAddress,
  packMember,
  unpackMember,
} from "../../../src/queue/message/message.ts";

const STAMP = 1_760_000_000_000_000;

// Computed by a second program in another language. They must never change.
test.each([
  ["", 11],
  ["a", 435],
  ["foobar", 732],
  ["order:42", 373],
  ["é😀", 569],
])("the bucket of key %j is %d", (key, bucket) => {
  expect(bucketOfKey(key)).toBe(bucket);
});

/**
 * Chi-square of the number of keys in each bucket. With 1,023 degrees of freedom, its mean is 1,023 and
 * its standard deviation 45: 1,250 is five standard deviations above the mean.
 */
function chiSquare(buckets: Iterable<number>): number {
  const counts = Array.from({ length: BUCKET_COUNT }, () => 0);
  let all = 0;
  for (const bucket of buckets) {
    counts[bucket]! += 1;
    all++;
  }
  const expected = all / BUCKET_COUNT;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

const numbers = Array.from({ length: 100_000 }, (_, i) => i);

test.each([
  ["numbers", (i: number) => String(i)],
  ["numbers behind a prefix", (i: number) => `order:${i}`],
  ["numbers before a suffix", (i: number) => `${i}:payment-timeout`],
  ["numbers of one length", (i: number) => `user-${String(i).padStart(12, "0")}`],
])("keys that are %s are spread evenly", (_, keyOf) => {
  expect(chiSquare(numbers.map((i) => bucketOfKey(keyOf(i))))).toBeLessThan(1250);
});

test("ids without a key are spread evenly", () => {
  expect(chiSquare(numbers.map(() => bucketOf(createId(STAMP)) as number))).toBeLessThan(1250);
});

test("an id holds the hash of its key and with it the bucket, and is otherwise random and ordered", () => {
  const ids = numbers.slice(0, 1000).map((i) => createId(STAMP + i, hashOf("order:42")));
  for (const id of ids) expect(bucketOf(id)).toBe(373);
  expect(new Set(ids.map((id) => sequenceIn(packAddress(1, id)))).size).toBe(1);
  expect(sequenceIn(packAddress(1, createId(STAMP, hashOf("order:43"))))).not.toBe(
    sequenceIn(packAddress(1, ids[0] as Buffer)),
  );
  expect(ids.toSorted((a, b) => Buffer.compare(a, b))).toEqual(ids);
  expect(new Set(ids.map((id) => id.readUInt16BE(14))).size).toBe(1);
  expect(new Set(ids.map((id) => id.toString("hex", 8))).size).toBe(1000);
});

test("an id parsed from text has the same bucket; an id of Java's has none", () => {
  const id = createId(STAMP, bucketOfKey("k"));
  const message = unpackMember(packMember(id, Buffer.from("abc"), "k"));
  expect(bucketOf(message!.id)).toBe(bucketOfKey("k"));
  expect(bucketOf(Buffer.alloc(8))).toBeUndefined();
});
