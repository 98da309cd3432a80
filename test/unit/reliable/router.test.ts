import { describe, expect, test } from "vitest";
import { Router } from "../../../src/reliable/consuming/router.ts";

const handler = () => {};

/** Returns the name of the route that takes a key. */
function findAmong(names: readonly string[], key: string | undefined): string | undefined {
  const routes = Object.fromEntries(names.map((name) => [name, () => name]));
  return new Router(routes).find(key)?.();
}

describe("a key is taken by", () => {
  const names = ["app1", "app1:trans", "app1:trans:notice", "app2:mail", "a::b"];
  test.each<[string | undefined, string | undefined]>([
    ["app1", "app1"],
    ["app1:trans", "app1:trans"],
    ["app1:trans:", "app1:trans"],
    ["app1:trans:notice:7", "app1:trans:notice"],
    ["app1:trans:refund:7", "app1:trans"],
    ["app1:transfer:1", "app1"],
    ["app1:x:y:z:1", "app1"],
    ["app2:mail:7", "app2:mail"],
    ["app2", undefined],
    ["app2:mailing:7", undefined],
    ["app12", undefined],
    ["App1", undefined],
    ["a::b:1", "a::b"],
    ["a:b:1", undefined],
    [":app1", undefined],
    [":", undefined],
    ["::::", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("%j: %j", (key, expected) => {
    expect(findAmong(names, key)).toBe(expected);
    expect(findAmong(names.toReversed(), key)).toBe(expected);
  });
});

test("a key with very many segments costs no more than one with a few", () => {
  const router = new Router({ "no:such": handler, "x::::::::x": handler });
  const startedAt = performance.now();
  for (let i = 0; i < 300; i++) {
    expect(router.find(":".repeat(16_000))).toBeUndefined();
    expect(router.find("no:such:".repeat(16_000))).toBe(handler);
  }
  expect(performance.now() - startedAt).toBeLessThan(8_000);
});

describe("names of every object", () => {
  test.each(["__proto__", "constructor", "toString", "hasOwnProperty"])(
    "%s is not a route",
    (key) => {
      const router = new Router({ a: handler });
      expect(router.find(key)).toBeUndefined();
      expect(router.find(`${key}:1`)).toBeUndefined();
    },
  );

  test.each(["__proto__", "constructor"])("%s may be a route", (key) => {
    const router = new Router({ [key]: handler });
    expect(router.find(`${key}:1`)).toBe(handler);
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });

  test("inherited properties are no routes", () => {
    const routes = Object.assign(Object.create({ inherited: handler }) as object, { own: handler });
    const router = new Router(routes);
    expect(router.find("own")).toBe(handler);
    expect(router.find("inherited")).toBeUndefined();
  });
});

test("later changes of the object change nothing", () => {
  const routes: Record<string, () => void> = { a: handler };
  const router = new Router(routes);
  routes["b"] = handler;
  delete routes["a"];
  expect([router.find("a"), router.find("b")]).toEqual([handler, undefined]);
});

describe("refuses", () => {
  test.each<[string, unknown, string]>([
    ["undefined", undefined, "routes must be an object, got undefined"],
    ["null", null, "routes must be an object, got null"],
    ["a string", "app1", "routes must be an object, got string"],
    ["an array", [handler], "routes must be an object, got an array"],
    ["an empty object", {}, "routes must have at least one entry, got none"],
    ["a Map", new Map([["a", handler]]), "routes must have at least one entry, got none"],
    ["an empty route", { a: handler, "": handler }, "a route must not be empty"],
    ["a colon first", { ":a": handler }, 'a route must not begin or end with ":", got ":a"'],
    ["a colon last", { "a:": handler }, 'a route must not begin or end with ":", got "a:"'],
    ["a colon alone", { ":": handler }, 'a route must not begin or end with ":", got ":"'],
    [
      "half a character",
      { "a\ud800": handler },
      String.raw`a route must be well-formed Unicode, got "a\ud800"`,
    ],
    ["no handler", { a: undefined }, 'the handler of route "a" must be a function, got undefined'],
    ["a name for a handler", { a: "b" }, 'the handler of route "a" must be a function, got string'],
  ])("%s", (_, routes, message) => {
    expect(() => new Router(routes as never)).toThrow(new TypeError(message));
  });
});

test.each<[string | undefined, string]>([
  ["app1:trans:notice:7", "app1:trans:notice"],
  ["app1:trans:notice:7:8", "app1:trans:notice"],
  ["app1:trans:notice", "app1:trans:notice"],
  ["app1:trans", "app1:trans"],
  ["app1", "app1"],
  ["::::", "::"],
  ["", ""],
  [undefined, ""],
])("an unknown %j is counted under %j", (key, name) => {
  expect(new Router({ a: handler }).nameOf(key)).toBe(name);
});
