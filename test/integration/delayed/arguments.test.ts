import { Redis } from "ioredis";
import { afterEach, describe, expect, test, vi } from "vitest";
import { DelayedQueue } from "../../../src/handles/delayed-queue.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/*
 * Every method of a delayed queue refuses unusable arguments before it sends anything. Above all it refuses misspelt
 * options, which would otherwise be ignored silently.
 */

const NOT_IDS = [undefined, null, 7, {}, [], "", new Date()];
const NOT_INSTANTS = [undefined, null, "2026-01-01", {}, 1n];
const NOT_DURATIONS = [undefined, null, "5", {}, new Date()];
const NOT_ITERABLES = [undefined, null, 7, {}, "order:42", { 0: "a", length: 1 }];
const NOT_WHOLE = [null, "3", {}, true];
const NOT_WHERES = [
  undefined,
  null,
  "order:",
  {},
  { prefix: "" },
  { prefix: 7 },
  { prefix: undefined },
  { prefx: "order:" },
  { prefix: "order:", dryRun: true },
];
const NOT_OFFER_OPTIONS = [
  null,
  "order:42",
  7,
  { kye: "order:42" },
  { key: 42 },
  { key: "" },
  { onDuplicate: "replace" },
  { key: "a", onDuplicate: "drop" },
  { key: "a", maxWait: 5 },
  { key: "a", onDuplicate: "replace", maxWait: "5" },
];

const each = (values: readonly unknown[]) => values.map((value) => [value]);

/** For each method: arguments that it cannot use. */
const BAD: Readonly<Record<string, readonly (readonly unknown[])[]>> = {
  offer: [
    ...NOT_DURATIONS.map((delay) => ["x", delay]),
    ...NOT_OFFER_OPTIONS.map((options) => ["x", 5000, options]),
  ],
  offerAt: [
    ...NOT_INSTANTS.map((at) => ["x", at]),
    ...NOT_OFFER_OPTIONS.map((options) => ["x", Date.now(), options]),
  ],
  offerMany: [
    ...each(NOT_ITERABLES),
    ...[null, "x", 7, [], {}, { delay: 5 }, { payload: "x" }, { payload: "x", delay: "5" }].map(
      (message) => [[{ payload: "first", delay: 5000 }, message]],
    ),
    [[{ payload: "x", delay: 5, dealy: 6 }]],
    [[{ payload: "x", delay: 5, kye: "order:42" }]],
    [[{ payload: "x", delay: 5, onDuplicate: "replace" }]],
  ],
  cancel: each(NOT_IDS),
  cancelMany: [...each(NOT_ITERABLES), ...NOT_IDS.map((id) => [["order:42", id]])],
  cancelWhere: [
    ...each(NOT_WHERES),
    ...[
      null,
      true,
      "dryRun",
      { dryrun: true },
      { dryRun: 1 },
      { dryRun: "yes" },
      { onKeys: [] },
      { onKeys: null },
    ].map((options) => [{ prefix: "order:" }, options]),
  ],
  find: each(NOT_WHERES),
  soonest: each(NOT_WHOLE),
  get: each(NOT_IDS),
  has: each(NOT_IDS),
  reschedule: [...NOT_IDS.map((id) => [id, 5000]), ...NOT_DURATIONS.map((delay) => ["a", delay])],
  rescheduleAt: [
    ...NOT_IDS.map((id) => [id, Date.now()]),
    ...NOT_INSTANTS.map((at) => ["order:42", at]),
  ],
  promote: each(NOT_IDS),
  forecast: each([
    undefined,
    null,
    7,
    {},
    { step: 0, count: 1 },
    { step: 1.5, count: 1 },
    { step: 1000, count: 0 },
    { step: 1000, count: 1001 },
    { step: 1000, count: 1, from: "now" },
    { step: 1000, count: 1, form: 0 },
  ]),
};

/** These take only a payload, or nothing at all. */
const ANY = new Set([
  "pause",
  "resume",
  "isPaused",
  "size",
  "isEmpty",
  "nextDeadline",
  "clear",
  "makePlain",
  "stats",
]);

function methodsOf(prototype: object): string[] {
  const names = Object.getOwnPropertyNames(prototype).filter((name) => {
    const { value } = Object.getOwnPropertyDescriptor(prototype, name) ?? {};
    return name !== "constructor" && typeof value === "function";
  });
  const parent: unknown = Object.getPrototypeOf(prototype);
  return parent === Object.prototype ? names : [...names, ...methodsOf(parent as object)];
}

afterEach(() => void vi.restoreAllMocks());

test("every method is tested here", () => {
  const tried = [...Object.keys(BAD), ...ANY];
  expect(methodsOf(DelayedQueue.prototype).toSorted()).toEqual(tried.toSorted());
});

describe.each(Object.entries(BAD))("%s", (method, calls) => {
  test("refuses unusable arguments, and sends nothing", async () => {
    const redis = newRedis();
    const queue = newLine({ redis, transfer: false }).getDelayedQueue(uniqueName());
    await queue.offer("there", 60_000, { key: "order:42" });
    expect(await queue.cancel("no such key")).toBe(false);

    const sent = vi.spyOn(Redis.prototype, "sendCommand");
    for (const args of calls) {
      const call = async () =>
        await (queue[method as keyof typeof queue] as (...args: unknown[]) => unknown)(...args);
      const outcome = await call().catch((error: unknown) => error);
      const what = JSON.stringify(args, (_, value: unknown) =>
        typeof value === "bigint" ? String(value) : value,
      );
      const isRefused = outcome instanceof TypeError || outcome instanceof RangeError;
      expect(isRefused, `${what} gave ${String(outcome)}`).toBe(true);
      expect((outcome as Error).message, what).toMatch(/ (must|needs|goes with) /);
    }
    // The heartbeats of the connections continue.
    const names = sent.mock.calls.map(([{ name }]) => name);
    expect(names.filter((name) => name !== "time")).toEqual([]);
    sent.mockRestore();
    expect(await queue.size()).toBe(1);
  });
});
