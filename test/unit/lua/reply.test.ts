import { expect, test } from "vitest";
import {
  asArray,
  asBuffer,
  asFlag,
  asFlags,
  asNumber,
  asRow,
  asRows,
  asText,
  orNothing,
} from "../../../src/lua/reply.ts";

test("a lent client may turn the integers of a reply into strings", () => {
  expect(asNumber(5)).toBe(5);
  expect(asNumber("5")).toBe(5);
  expect(asNumber(Buffer.from("5"))).toBe(5);
});

test("a reply of another shape is an error that does not quote it", () => {
  expect(() => asNumber(null)).toThrow(new TypeError("unexpected reply of a script: nil"));
  expect(() => asNumber(undefined)).toThrow(TypeError);
  expect(() => asNumber([1])).toThrow(TypeError);
  expect(() => asBuffer("secret")).toThrow(new TypeError("unexpected reply of a script: string"));
  expect(() => asBuffer(null)).toThrow(TypeError);
  expect(() => asArray(Buffer.from("secret"))).toThrow(
    new TypeError("unexpected reply of a script: object"),
  );
});

test("a row is read by the names of its columns", () => {
  const columns = { moved: asNumber, name: asText, next: orNothing(asNumber), isPaused: asFlag };
  expect(asRow([3, Buffer.from("a"), null, 1], columns)).toEqual({
    moved: 3,
    name: "a",
    next: undefined,
    isPaused: true,
  });
});

test("a column that is missing at the end of a row is undefined or an error", () => {
  expect(asRow([3], { moved: asNumber, next: orNothing(asNumber) })).toEqual({ moved: 3 });
  expect(() => asRow([3], { moved: asNumber, next: asNumber })).toThrow(TypeError);
});

test("rows follow one another in a reply", () => {
  const columns = { deadline: asNumber, member: asText };
  expect(asRows([1, Buffer.from("a"), 2, Buffer.from("b")], columns)).toEqual([
    { deadline: 1, member: "a" },
    { deadline: 2, member: "b" },
  ]);
  expect(asRows([], columns)).toEqual([]);
  expect(() => asRows([1, Buffer.from("a"), 2], columns)).toThrow(TypeError);
});

test("flags are 1 for true", () => {
  expect(asFlags([1, 0, "1"])).toEqual([true, false, true]);
});
