import { describe, expect, test } from "vitest";
import { reliableSettings } from "../../../src/handles/reliable-options.ts";
import {
  checkBatchSubscribe,
  checkReliableSubscribe,
  checkRoute,
} from "../../../src/reliable/consuming/subscribe-options.ts";

const groupOf = (options: object) => reliableSettings(options).group;
const start = (at: number) => groupOf({ start: new Date(at) }).start;

test("the defaults", () => {
  const { queue, group, retry } = reliableSettings();
  expect(group).toEqual({
    group: "default",
    start: "0",
    leaseTimeout: 30_000,
    maxAttempts: 8,
    keepHandled: 0,
  });
  expect(queue).toMatchObject({ transfer: true, interop: "none" });
  const pauses = [1, 2, 30].map((attempt) => retry.pauseAfter(attempt, undefined) ?? NaN);
  for (const [i, most] of [1_000, 2_000, 3_600_000].entries()) {
    expect(pauses[i]).toBeLessThanOrEqual(most);
    expect(pauses[i]).toBeGreaterThanOrEqual(0.8 * most);
  }
});

test("given options are used, and undefined counts as not given", () => {
  const options = {
    group: "ä",
    start: "new",
    leaseTimeout: 100,
    maxAttempts: 1,
    keepHandled: 1000,
    retry: [5],
  };
  const settings = reliableSettings(options as never);
  const { retry: _, start: __, ...given } = options;
  expect(settings.group).toEqual({ ...given, start: "$" });
  expect(settings.retry.pauseAfter(9, undefined)).toBe(5);
  const nothing = { group: undefined, start: undefined, maxAttempts: undefined };
  expect(groupOf({ ...nothing, retry: undefined })).toEqual(groupOf({}));
});

test("a date includes what became ready in its very millisecond", () => {
  expect(start(0)).toBe("0");
  expect(start(1)).toBe("0-18446744073709551615");
  expect(start(1_700_000_000_000)).toBe("1699999999999-18446744073709551615");
});

test("options of the queue go to the queue; the client's options are its defaults", () => {
  const { queue } = reliableSettings({ maxPayloadBytes: 5 }, { transfer: false });
  expect(queue).toMatchObject({ maxPayloadBytes: 5, transfer: false });
});

const BAD: [options: object, message: RegExp][] = [
  [{ gruop: "a" }, /reliable queue option must be one of .*, got "gruop"/],
  [{ group: 7 }, /group must be a string, got number/],
  [{ group: "" }, /group must have 1 to 200 bytes of UTF-8, got 0/],
  [{ group: "ä".repeat(101) }, /group must have 1 to 200 bytes of UTF-8, got 202/],
  [{ group: "\ud800" }, /group must be well-formed/],
  [{ start: "1" }, /start must be "0", "new" or a Date, got "1"/],
  [{ start: 0 }, /start must be "0", "new" or a Date, got number/],
  [{ start: null }, /start must be .* or a Date/],
  [{ start: new Date(NaN) }, /start must be a valid date/],
  [{ start: new Date(-1) }, /start must not be before 1970, got 1969/],
  [{ leaseTimeout: 99 }, /leaseTimeout must be a whole number between 100 and 86400000/],
  [{ leaseTimeout: 86_400_001 }, /leaseTimeout must be .* got 86400001/],
  [{ leaseTimeout: 100.5 }, /leaseTimeout must be a whole number/],
  [{ leaseTimeout: "1000" }, /leaseTimeout must be a whole number, got string/],
  [{ maxAttempts: 0 }, /maxAttempts must be a whole number between 1 and 1000000, got 0/],
  [{ maxAttempts: Infinity }, /maxAttempts must be a whole number/],
  [{ retry: [] }, /retry must have at least one pause/],
  [{ retry: 5 }, /retry must be an array/],
  [{ retry: [-1] }, /retry\[0\] must be between 0 and/],
  [{ codec: "none" }, /codec must be/],
];
test.each(BAD)("%j is refused", (options, message) => {
  expect(() => reliableSettings(options)).toThrow(message);
});

const nothing = () => {};
const orderBy = () => "";

describe("options of subscriptions", () => {
  test("are complete, with one handler at once by default", () => {
    expect(checkReliableSubscribe({})).toEqual({ concurrency: 1 });
    const all = { concurrency: 10_000, onError: nothing, orderBy };
    expect(checkReliableSubscribe(all)).toEqual(all);
    expect(checkBatchSubscribe({ limit: 10_000 })).toEqual({
      limit: 10_000,
      concurrency: 1,
      wait: 0,
    });
    expect(checkRoute({})).toEqual({ concurrency: 1, unknown: "reject" });
    for (const unknown of ["reject", "ack", "leave"] as const) {
      expect(checkRoute({ unknown, orderBy })).toEqual({ unknown, orderBy, concurrency: 1 });
    }
  });

  const bad: [check: (options: never) => unknown, options: unknown, message: RegExp][] = [
    [checkReliableSubscribe, null, /subscribe options must be an object, got null/],
    [checkReliableSubscribe, { unknown: "ack" }, /must be one of concurrency, onError, orderBy/],
    [checkReliableSubscribe, { concurrency: 10_001 }, /concurrency must be .* between 1 and 10000/],
    [checkReliableSubscribe, { orderBy: "key" }, /orderBy must be a function, got string/],
    [checkReliableSubscribe, { onError: null }, /onError must be a function/],
    [checkBatchSubscribe, {}, /limit must be a whole number, got undefined/],
    [checkBatchSubscribe, { limit: 0 }, /limit must be a whole number between 1 and 10000, got 0/],
    [checkBatchSubscribe, { limit: 1, orderBy }, /must be one of concurrency, onError, limit/],
    [checkBatchSubscribe, { limit: 1, concurrency: 0 }, /concurrency must be/],
    [checkRoute, { unknown: "drop" }, /unknown must be "reject", "ack" or "leave", got "drop"/],
    [checkRoute, { uknown: "ack" }, /got "uknown"/],
    [checkRoute, { concurrency: 1.5 }, /concurrency must be/],
  ];
  test.each(bad)("%o refuses %j", (check, options, message) => {
    expect(() => check(options as never)).toThrow(message);
  });
});
