import { expect, test } from "vitest";
import { ReadSize } from "../../../src/reliable/group/read-size.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

const messages = (count: number, bytes: number) =>
  Array.from({ length: count }, () => ({ payload: Buffer.alloc(bytes) }));

test("reads grow step by step while messages are small, up to 1,000", () => {
  const size = new ReadSize();
  const counts = [size.count];
  for (let i = 0; i < 3; i++) {
    size.note(messages(size.count, KIB));
    counts.push(size.count);
  }
  expect(counts).toEqual([100, 400, 1000, 1000]);
});

test("large messages shrink the next read at once, down to one message", () => {
  const size = new ReadSize();
  size.note(messages(2, MIB));
  expect(size.count).toBe(16);
  size.note(messages(1, 17 * MIB));
  expect(size.count).toBe(1);
  size.note(messages(1, 0));
  expect(size.count).toBe(4);
});

test("an empty read changes nothing", () => {
  const size = new ReadSize();
  size.note(messages(1, MIB));
  size.note([]);
  expect(size.count).toBe(16);
});
