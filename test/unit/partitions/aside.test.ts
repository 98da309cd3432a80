import { expect, test } from "vitest";
import type { Entry } from "../../../src/lua/places/stream.ts";
import { Aside } from "../../../src/partitions/exclusive/aside.ts";
import { hashOf } from "../../../src/queue/message/bucket.ts";
import { createId, packAddress } from "../../../src/queue/message/message.ts";
import { Held, type Origin } from "../../../src/reliable/group/held.ts";

let stamp = 1_760_000_000_000_000;

function newHeld(key?: string, heldBackUntil?: number, bytes = 1): Held {
  const entry: Entry = {
    entryId: `${stamp}-0`,
    address: packAddress(1000, createId(stamp++, key === undefined ? undefined : hashOf(key))),
    payload: Buffer.alloc(bytes),
    trailer: Buffer.alloc(0),
    attempts: 0,
    group: "g",
    isOrphan: false,
    heldBackUntil,
    hasSlot: false,
  };
  return new Held(entry, {} as Origin, () => {});
}

test("the first of each key comes, once it is no longer held back", () => {
  const aside = new Aside();
  const [a1, a2, b1] = [newHeld("a", 500), newHeld("a"), newHeld("b", 300)] as const;
  for (const held of [a1, a2, b1]) aside.put(held);
  expect(aside.next(100)).toEqual({ held: undefined, wait: 200 });
  expect(aside.next(300)).toEqual({ held: b1, wait: 0 });
  aside.remove(b1);
  expect(aside.next(300)).toEqual({ held: undefined, wait: 200 });
  expect(aside.next(500).held).toBe(a1);
  aside.remove(a1);
  expect(aside.next(500).held).toBe(a2);
  aside.remove(a2);
  expect(aside.next(500)).toEqual({ held: undefined, wait: Infinity });
  expect(aside.isEmpty).toBe(true);
});

test("one that failed comes before the others with its key, and holds up no other", () => {
  const aside = new Aside();
  const [later, failed, other] = [newHeld("a"), newHeld("a", 900), newHeld()] as const;
  aside.put(later);
  aside.put(failed, true);
  expect(aside.hasBefore(newHeld("a"))).toBe(true);
  expect(aside.hasBefore(other)).toBe(false);
  aside.put(other);
  expect(aside.next(100).held).toBe(other);
  aside.remove(other);
  expect(aside.next(100)).toEqual({ held: undefined, wait: 800 });
  expect(aside.all()).toEqual([failed, later]);
});

test("Redis may hold one back for longer, and a lost one holds nothing up", () => {
  const aside = new Aside();
  const [first, second] = [newHeld("a", 500), newHeld("a")] as const;
  aside.put(first);
  aside.put(second);
  aside.postpone(first, 600);
  expect(aside.next(500)).toEqual({ held: undefined, wait: 100 });
  first.lose();
  aside.review();
  expect(aside.next(500).held).toBe(first);
  aside.remove(first);
  expect(aside.next(500).held).toBe(second);
});

test("it is full at a number, and at a size", () => {
  const aside = new Aside();
  for (let count = 0; count < 500; count++) {
    expect(aside.isFull).toBe(false);
    aside.put(newHeld("a"));
  }
  expect(aside.isFull).toBe(true);
  const large = new Aside();
  const held = newHeld("a", undefined, 4 * 1024 * 1024);
  large.put(held);
  expect(large.isFull).toBe(true);
  large.remove(held);
  expect(large.isFull).toBe(false);
});
