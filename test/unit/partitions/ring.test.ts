import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { MAX_PARTITIONS } from "../../../src/queue/options.ts";
import { PartitionNames, partitionName, tableOf } from "../../../src/partitions/ring/ring.ts";
import { SLOT_COUNT, slotOfTag } from "../../../src/queue/slot.ts";
import { queueKeys } from "../../../src/queue/keys.ts";

const all = Array.from({ length: MAX_PARTITIONS }, (_, i) => i);
const orders = new PartitionNames("orders");

// They must never change: messages are stored under these names.
test.each([
  ["orders", 0, "{orders/0/18}"],
  ["orders", 1, "{orders/1/137}"],
  ["orders", 12, "{orders/12/467}"],
  ["orders", 255, "{orders/255/356}"],
  ["é😀", 0, "{é😀/0/8}"],
  ["a{b}", 7, "{a%7Bb%7D/7/350}"],
  ["50%", 2, "{50%25/2/320}"],
])("queue %j, partition %d: %s", (queue, partition, name) => {
  expect(partitionName(queue, partition)).toBe(name);
  expect(new PartitionNames(queue).at(partition)).toBe(name);
});

// `orders/1` is here because its partitions look like those of `orders`.
test("every partition of every queue has a name of its own, all of which is its hash tag", () => {
  const queues = ["orders", "orders/1", "{a}b", "%7Ba%7Db", "x{a}}{", "50%", "50%25", "{a/0/1}"];
  const names = queues.flatMap((queue) => all.slice(0, 20).map((p) => partitionName(queue, p)));
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) {
    expect(name).toMatch(/^\{[^{}]+\}$/);
    expect(queueKeys(name).stream).toBe(`delayline_stream:${name}`);
  }
});

test.each([-1, 256, 1.5, Number.NaN])("there is no partition %d", (partition) => {
  expect(() => partitionName("orders", partition)).toThrow(RangeError);
});

/** The last slot of each master, as `redis-cli --cluster create` assigns them. */
function byRedisCli(masters: number): number[] {
  return Array.from({ length: masters }, (_, i) =>
    Math.round((SLOT_COUNT * (i + 1)) / masters - 1),
  );
}

function byFloor(masters: number): number[] {
  return Array.from(
    { length: masters },
    (_, i) => Math.floor((SLOT_COUNT * (i + 1)) / masters) - 1,
  );
}

test.each([
  ["redis-cli", 3, byRedisCli(3)],
  ["redis-cli", 4, byRedisCli(4)],
  ["redis-cli", 6, byRedisCli(6)],
  ["floor", 3, byFloor(3)],
  ["floor", 4, byFloor(4)],
  ["floor", 6, byFloor(6)],
])("slots by %s to %d masters: each has equally many partitions", (_, masters, lastSlots) => {
  for (const queue of [orders, new PartitionNames("{tag}q")]) {
    const counts = Array.from({ length: masters }, () => 0);
    for (const partition of all.slice(0, 64)) {
      const slot = slotOfTag(queue.at(partition).slice(1, -1));
      counts[lastSlots.findIndex((last) => slot <= last)]! += 1;
      const difference = Math.max(...counts) - Math.min(...counts);
      expect(difference, `${partition + 1} partitions`).toBeLessThanOrEqual(1);
    }
  }
});

// Beyond these the places are halved, and two can meet.
test("no two of the first 192 partitions are in one slot", () => {
  const first = all.slice(0, 192);
  const slots = first.map((partition) => slotOfTag(orders.at(partition).slice(1, -1)));
  expect(new Set(slots).size).toBe(192);
});

// They must never change: processes of all versions must agree on them.
test.each([
  [2, "13e6759c1aadff9176510024374b80e23f8ab2df"],
  [9, "78da592814dd19fbac803e54f158cd206b522325"],
  [256, "a2c37868bd94cf573eed19632b827a8a58ce5133"],
])("the table of %d partitions stays as it is", (partitions, sha1) => {
  expect(createHash("sha1").update(tableOf(partitions)).digest("hex")).toBe(sha1);
});

test("partitions have equally many buckets, and only a new one gets any of the others'", () => {
  for (let partitions = 1; partitions <= MAX_PARTITIONS; partitions++) {
    const table = tableOf(partitions);
    const before = tableOf(Math.max(1, partitions - 1));
    const sizes = Array.from({ length: partitions }, () => 0);
    let strays = 0;
    for (const [bucket, partition] of table.entries()) {
      sizes[partition]! += 1;
      if (partition !== before[bucket] && partition !== partitions - 1) strays++;
    }
    expect(strays, `${partitions} partitions`).toBe(0);
    expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
  }
});

test.each([
  [1, 2, 512],
  [2, 8, 768],
  [8, 2, 768],
  [8, 9, 113],
  [256, 256, 0],
])("from %d to %d partitions %d buckets move", (from, to, moved) => {
  const before = tableOf(from);
  expect(tableOf(to).filter((partition, bucket) => partition !== before[bucket])).toHaveLength(
    moved,
  );
});

test.each([0, 257, 1.5])("there is no table of %d partitions", (partitions) => {
  expect(() => tableOf(partitions)).toThrow(RangeError);
});
