import { expect, test } from "vitest";
import { ReadSize } from "../../../src/reliable/group/read-size.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

const messages = (count: number, bytes: number) =>
  Array.from({ length: count }, () => ({ payload: Buffer.alloc(bytes) }));

/** How the next read is made if `wanted` messages are wanted, after one that returned these. */
function planAfter(read: ReturnType<typeof messages>, asked: number, wanted = Infinity) {
  const size = new ReadSize();
  size.note(read, { count: asked, isPacked: false });
  return size.planFor(wanted);
}

test("reads grow step by step while messages are small, up to 1,000", () => {
  const size = new ReadSize();
  const counts: number[] = [];
  for (let i = 0; i < 4; i++) {
    const { count, isPacked } = size.planFor(5000);
    expect(isPacked).toBe(false);
    counts.push(count);
    // Not all that was asked for: there is no backlog.
    size.note(messages(count, KIB), { count: count + 1, isPacked });
  }
  expect(counts).toEqual([100, 400, 1000, 1000]);
});

test("large messages shrink the next read at once, down to one message", () => {
  const size = new ReadSize();
  const next = (read: ReturnType<typeof messages>) => {
    size.note(read, { count: 100, isPacked: false });
    return size.planFor(5000).count;
  };
  expect(next(messages(2, MIB))).toBe(16);
  expect(next(messages(1, 17 * MIB))).toBe(1);
  expect(next(messages(1, 0))).toBe(4);
});

test("an empty read changes nothing", () => {
  const size = new ReadSize();
  size.note(messages(1, MIB), { count: 2, isPacked: false });
  size.note([], { count: 16, isPacked: false });
  expect(size.planFor(5000).count).toBe(16);
});

test("a read asks for no more than is wanted", () => {
  expect(new ReadSize().planFor(7)).toEqual({ count: 7, isPacked: false });
  expect(planAfter(messages(50, 100), 50, 40)).toEqual({ count: 40, isPacked: true });
});

test("a read is packed only after one that returned all that it asked for", () => {
  expect(planAfter(messages(50, 100), 50).isPacked).toBe(true);
  expect(planAfter(messages(49, 100), 50).isPacked).toBe(false);
  expect(planAfter([], 50).isPacked).toBe(false);
});

test("a packed read asks for 200 messages at most, and 64 KiB", () => {
  expect(planAfter(messages(50, 100), 50)).toEqual({ count: 200, isPacked: true });
  expect(planAfter(messages(50, KIB), 50)).toEqual({ count: 64, isPacked: true });
  // Too large, or too few, to be packed.
  expect(planAfter(messages(50, 5 * KIB), 50).isPacked).toBe(false);
  expect(planAfter(messages(50, 100), 50, 15)).toEqual({ count: 15, isPacked: false });
});
