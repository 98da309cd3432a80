import { expect, onTestFinished, test } from "vitest";
import type { ReliableQueue } from "../../../src/index.ts";
import type { LetterFilter } from "../../../src/inside.ts";
import {
  changeLetters,
  changeLettersAt,
  deadByReason,
} from "../../../src/tools/view/dead-reasons.ts";
import { Inspector } from "../../../src/tools/view/inspector.ts";
import { messagesIn } from "../../../src/tools/view/locate.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";

function newInspector(): Inspector {
  const inspector = new Inspector({ redis: redisUrl() });
  onTestFinished(() => inspector.close());
  return inspector;
}

/** Lets a message die of each of these reasons, one after another. Its key is the reason's number. */
async function bury(queue: ReliableQueue, reasons: readonly string[]): Promise<void> {
  for (const [i, reason] of reasons.entries()) {
    await queue.offer("x", 0, { key: `order:${i}` });
    await (await queue.take()).reject(reason);
  }
}

const last = async <Item>(all: AsyncIterable<Item>) => (await collect(all)).at(-1) as Item;
const REASONS = [
  "connect ETIMEDOUT 10.0.0.3:5432",
  "no such customer",
  "connect ETIMEDOUT 10.0.0.4:5433",
  "connect ETIMEDOUT 10.0.0.3:5432",
];
const FOLDED = "connect ETIMEDOUT #:#";

test.each([
  ["an ordinary", {}],
  ["a partitioned", { partitions: 3 }],
])("%s queue: dead letters by reason, and one reason redriven", async (_, options) => {
  const name = uniqueName();
  const queue: ReliableQueue = newLine().getReliableQueue(name, options);
  await bury(queue, REASONS);
  const open = await newInspector().open(name);
  const seen = await last(deadByReason(open));
  expect(seen).toMatchObject({ others: 0, read: 4, total: 4 });
  const [first, second] = seen.groups;
  expect(first).toMatchObject({ reason: FOLDED, group: "default", isUnreadable: false, count: 3 });
  expect(REASONS).toContain(first?.example);
  expect(new Set(first?.latest.map(({ key }) => key))).toEqual(
    new Set(["order:0", "order:2", "order:3"]),
  );
  expect(first?.lastDiedAt).toBeGreaterThan(first?.firstDiedAt ?? Infinity);
  expect(second).toMatchObject({ reason: "no such customer", count: 1 });

  const filter = { reason: FOLDED };
  const dry = await last(changeLetters(open, "redrive", filter, { isDry: true }));
  expect(dry).toEqual({ looked: 4, matched: 3, done: 0 });
  expect(await queue.deadLetters.size()).toBe(4);
  const done = await last(changeLetters(open, "redrive", filter));
  expect(done).toEqual({ looked: 4, matched: 3, done: 3 });
  const again = [await queue.take(), await queue.take(), await queue.take()];
  expect(new Set(again.map(({ key }) => key))).toEqual(new Set(["order:0", "order:2", "order:3"]));
  expect(await queue.deadLetters.size()).toBe(1);
});

test("letters are chosen by reason, group, key and age", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue(name);
  await bury(queue, REASONS);
  const open = await newInspector().open(name);
  const letters = (await collect(queue.deadLetters)).map(({ diedAt }) => diedAt.getTime());
  const count = async (filter: LetterFilter) =>
    (await last(changeLetters(open, "remove", filter, { isDry: true }))).matched;
  expect(await count({})).toBe(4);
  expect(await count({ reason: REASONS[0] })).toBe(2);
  expect(await count({ reason: FOLDED, prefix: "order:2" })).toBe(1);
  expect(await count({ prefix: "order:" })).toBe(4);
  expect(await count({ group: "another" })).toBe(0);
  expect(await count({ diedBefore: letters[2] })).toBe(2);
  expect(await last(changeLetters(open, "remove", { reason: FOLDED }))).toMatchObject({ done: 3 });
  expect((await collect(queue.deadLetters)).map(({ reason }) => reason)).toEqual([REASONS[1]]);
});

test("letters are changed in the places where they were seen", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name, { partitions: 2 });
  await bury(queue, REASONS);
  const open = await newInspector().open(name);
  const seen = await collect(messagesIn(open, "dead"));
  const placeOf = (wanted: string) => seen.find(({ key }) => key === wanted)?.place ?? "";
  const places = [placeOf("order:1"), placeOf("order:2"), "7:1-1", "no place"];
  expect(await changeLettersAt(open, "redrive", places)).toBe(2);
  expect(await changeLettersAt(open, "redrive", places)).toBe(0);
  expect(await changeLettersAt(open, "remove", [placeOf("order:3")])).toBe(1);
  expect((await collect(queue.deadLetters)).map(({ key }) => key)).toEqual(["order:0"]);
  const back = [await queue.take(), await queue.take()];
  expect(new Set(back.map(({ key }) => key))).toEqual(new Set(["order:1", "order:2"]));
});

test("a count stops at its limit, and says so", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name);
  await bury(queue, REASONS);
  const open = await newInspector().open(name);
  const seen = await last(deadByReason(open, { most: 3 }));
  expect(seen).toMatchObject({ read: 3, total: 4, groups: [{ count: 2 }, { count: 1 }] });
});

test("a plain queue has no dead letters", async () => {
  const name = uniqueName();
  await newLine().getDelayedQueue(name).offer("x", 60_000);
  const open = await newInspector().open(name);
  expect(await last(deadByReason(open))).toEqual({ groups: [], others: 0, read: 0, total: 0 });
  expect(await last(changeLetters(open, "remove", {}))).toMatchObject({ looked: 0, done: 0 });
});
