import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { checkedHeaders, headersBytes } from "../../../src/queue/message/headers.ts";

const many = (count: number, text = "") =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`h${i}`, text]));

test.each<[Record<string, string>]>([
  [{ traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" }],
  [{ a: "", "é ü": "😀" }],
  [{ ["é".repeat(100)]: "1" }],
  [{ a: "x".repeat(8_191) }],
  [many(64)],
  [JSON.parse('{"__proto__":"1","constructor":"2"}') as Record<string, string>],
  [Object.assign(Object.create(null) as Record<string, string>, { a: "1" })],
  [runInNewContext("({ a: '1' })") as Record<string, string>],
])("headers may be %j", (headers) => {
  const checked = checkedHeaders(headers);
  expect(Object.entries(checked ?? {})).toEqual(Object.entries(headers));
});

test("no headers and empty headers are the same", () => {
  expect(checkedHeaders(undefined)).toBeUndefined();
  expect(checkedHeaders({})).toBeUndefined();
});

test("later changes by the caller change nothing", () => {
  const headers = { a: "1" };
  const checked = checkedHeaders(headers);
  headers.a = "2";
  expect(checked).toEqual({ a: "1" });
});

test.each<[unknown, string]>([
  [null, "headers must be a plain object of strings, got null"],
  ["a=1", "headers must be a plain object of strings, got string"],
  [["a", "1"], "headers must be a plain object of strings, got an array"],
  [new Map([["a", "1"]]), "headers must be a plain object of strings, got an instance of a class"],
  [
    new Headers({ a: "1" }),
    "headers must be a plain object of strings, got an instance of a class",
  ],
  [{ a: 1 }, 'header "a" must be a string, got number'],
  [{ a: undefined }, 'header "a" must be a string, got undefined'],
  [{ a: null }, 'header "a" must be a string, got null'],
  [{ a: ["1"] }, 'header "a" must be a string, got an array'],
  [{ a: "secret \ud800" }, 'header "a" must be well-formed Unicode'],
  [{ "\ud800": "1" }, "the name of a header must be well-formed Unicode"],
])("headers cannot be %o", (headers, message) => {
  expect(() => checkedHeaders(headers)).toThrow(new TypeError(message));
});

test.each<[object, string]>([
  [{ "": "1" }, "the name of a header must have 1 to 200 bytes of UTF-8, got 0"],
  [{ ["é".repeat(101)]: "" }, "the name of a header must have 1 to 200 bytes of UTF-8, got 202"],
  [many(65), "headers must be at most 64, got 65"],
  [
    { a: "x".repeat(4_096), b: "é".repeat(2_048) },
    "headers must have at most 8192 bytes of UTF-8, names and values together, got 8194",
  ],
])("headers have limits", (headers, message) => {
  expect(() => checkedHeaders(headers)).toThrow(new RangeError(message));
});

test("their size is that of names and values", () => {
  expect(headersBytes({ a: "é", bc: "" })).toBe(5);
});
