import { expect, test } from "vitest";
import { unpackEntry } from "../../../src/lua/places/stream.ts";

/** The shortest possible address: a deadline. */
const ADDRESS = "deadline";

const unpack = (fields: Readonly<Record<string, string>>) =>
  unpackEntry(
    "1-1",
    Object.entries(fields)
      .flat()
      .map((text) => Buffer.from(text)),
  );

test("an entry is read by the names of its fields", () => {
  const fields = { p: "payload", g: "group", a: "an address", n: "2", t: "key", d: "1", u: "70" };
  expect(unpack(fields)).toEqual({
    entryId: "1-1",
    address: Buffer.from("an address"),
    payload: Buffer.from("payload"),
    trailer: Buffer.from("key"),
    attempts: 2,
    group: "group",
    isOrphan: true,
    heldBackUntil: 70,
    hasSlot: false,
  });
});

test("missing fields of an entry have defaults", () => {
  expect(unpack({ a: ADDRESS, p: "" })).toEqual({
    entryId: "1-1",
    address: Buffer.from(ADDRESS),
    payload: Buffer.alloc(0),
    trailer: Buffer.alloc(0),
    attempts: 0,
    group: undefined,
    isOrphan: false,
    heldBackUntil: undefined,
    hasSlot: false,
  });
});

test.each(["-3", "1.5", "nan", "inf", "1e300", "4294967295", "x", ""])(
  "an entry: %j is not a number of attempts",
  (n) => {
    expect(unpack({ a: ADDRESS, p: "p", n })?.attempts).toBe(0);
  },
);

test.each(["-3", "0", "1.5", "nan", "inf", "1e300", "9000000000000001", "x", ""])(
  "an entry: %j is not an instant until which it is held back",
  (u) => {
    expect(unpack({ a: ADDRESS, p: "p", u })?.heldBackUntil).toBeUndefined();
  },
);

test.each([
  {},
  { a: ADDRESS },
  { p: "p" },
  { a: ADDRESS.slice(1), p: "p" },
  { a: "a".repeat(256), p: "p" },
])("not an entry of a queue: %j", (fields) => {
  expect(unpack(fields)).toBeUndefined();
});
