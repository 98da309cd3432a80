import { describe, expect, test } from "vitest";
import { defineQueue } from "../../../src/index.ts";

test("a definition is its name, its kind and its options, frozen", () => {
  const retry = [1000, 5000];
  const group = { maxAttempts: 4, retry };
  const notices = defineQueue("notices", { codec: "json", reliable: group });
  expect(notices).toEqual({
    name: "notices",
    kind: "reliable",
    options: { codec: "json", maxAttempts: 4, retry: [1000, 5000] },
  });
  retry.push(1);
  group.maxAttempts = 1;
  expect(notices.options).toMatchObject({ maxAttempts: 4, retry: [1000, 5000] });
  for (const part of [notices, notices.options, notices.options.retry]) {
    expect(Object.isFrozen(part)).toBe(true);
  }
});

test("it is plain unless it says otherwise; true is a reliable one with the defaults", () => {
  expect(defineQueue("q")).toEqual({ name: "q", kind: "plain", options: {} });
  expect(defineQueue("q", { partitions: 4 }).options).toEqual({ partitions: 4 });
  expect(defineQueue("q", { reliable: true })).toEqual({
    name: "q",
    kind: "reliable",
    options: {},
  });
});

describe("is checked at once", () => {
  test.each<[string, unknown, RegExp]>([
    ["", {}, /^queue name must not be empty$/],
    ["a}b", {}, /^queue name must have no braces or a whole non-empty {tag}/],
    ["{orders/0/18}", {}, /^queue name must not be that of a partition/],
    ["q", "json", /^queue definition options must be an object, got a string; such as { codec }$/],
    ["q", { codec: "jsno" }, /^codec must be /],
    ["q", { partitions: 0 }, /^partitions must be a whole number between 1 and 256, got 0$/],
    ["q", { partitons: 1 }, /got "partitons"; did you mean partitions\?$/],
    ["q", { schema: {} }, /^queue definition option must be one of codec,.*got "schema"/],
    ["q", { transfer: false }, /^queue definition option must not be transfer: each process/],
    [
      "q",
      { maxAttempts: 4 },
      /^queue definition option must not be maxAttempts; write reliable: { maxAttempts }$/,
    ],
    ["q", { reliable: false }, /^reliable options must be an object, got false/],
    [
      "q",
      { reliable: { maxDeliveryCount: 4 } },
      /^reliable option must be one of group,.*did you mean maxAttempts\?$/,
    ],
    ["q", { reliable: { maxAttempts: 0 } }, /^maxAttempts must be a whole number/],
    [
      "q",
      { reliable: { strict: true } },
      /^strict must be left out of a queue that is not exclusive/,
    ],
    ["q", { reliable: { exclusive: true }, interop: "redisson" }, /^interop must be "none"/],
  ])("%j, %j", (name, options, message) => {
    expect(() => defineQueue(name, options as never)).toThrow(message);
  });
});
