import { Redis } from "ioredis";
import { afterEach, describe, expect, test, vi } from "vitest";
import { DeadLetters } from "../../../src/handles/dead-letters.ts";
import { Delivery } from "../../../src/reliable/consuming/delivery.ts";
import { ReliableQueue } from "../../../src/handles/reliable-queue.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/*
 * Every method of a reliable queue, of its deliveries and of its dead letters refuses illegal arguments before it sends
 * anything. The tests of the delayed queue cover the inherited methods.
 */

const NOT_OPTIONS = [null, "x", 7, { sginal: undefined }, { signal: 5 }, { signal: null }];
const NOT_FUNCTIONS = [undefined, null, "x", 7, {}];
const NOT_DURATIONS = [null, "5", {}, new Date(), -1, NaN, Infinity, 9e15];
const NOT_COUNTS = [null, "3", 0, -1, 1.5, NaN, 10_001];
const NOT_IDS = [undefined, null, 7, {}, "", "order:42", new Date()];
const NOT_HEADERS = [null, "x", 7, [], { a: 1 }, { "": "x" }, { a: undefined }];

const nothing = () => {};
const withOption = (name: string, values: readonly unknown[]) =>
  values.map((value) => ({ [name]: value }));

const NOT_SUBSCRIBE = [
  null,
  "x",
  7,
  { concurency: 1 },
  ...withOption("concurrency", NOT_COUNTS),
  ...withOption("onError", [null, "x", {}]),
];

type Calls = readonly (readonly unknown[])[];

/** Illegal arguments for each method. */
const OF_QUEUE: Readonly<Record<string, Calls>> = {
  offer: [
    ...[undefined, ...NOT_DURATIONS].map((delay) => ["x", delay]),
    ...withOption("headers", NOT_HEADERS).map((options) => ["x", 5, options]),
  ],
  offerAt: [
    ...[undefined, null, "2026-01-01", {}].map((at) => ["x", at]),
    ...withOption("headers", NOT_HEADERS).map((options) => ["x", 5, options]),
  ],
  offerMany: [
    ...[undefined, null, "x", 7, {}].map((messages) => [messages]),
    ...withOption("headers", NOT_HEADERS).map((options) => [
      [{ payload: "x", delay: 5, ...options }],
    ]),
  ],
  has: NOT_IDS.filter((id) => id !== "order:42").map((id) => [id]),
  handled: [
    ...NOT_IDS.filter((id) => id !== "order:42").map((id) => [id]),
    ...NOT_OPTIONS.map((options) => ["order:42", options]),
  ],
  revoke: [
    ...NOT_IDS.filter((id) => id !== "order:42").map((id) => [id]),
    ...NOT_OPTIONS.map((options) => ["order:42", options]),
    ...withOption("reason", [null, 7, "", {}]).map((options) => ["order:42", options]),
    ...withOption("wait", NOT_DURATIONS).map((options) => ["order:42", options]),
  ],
  stage: [
    ...NOT_IDS.filter((id) => id !== "order:42").map((id) => [id]),
    ...NOT_OPTIONS.map((options) => ["order:42", options]),
  ],
  running: NOT_OPTIONS.map((options) => [options]),
  take: NOT_OPTIONS.map((options) => [options]),
  poll: [
    ...NOT_DURATIONS.map((timeout) => [timeout]),
    ...NOT_OPTIONS.map((options) => [0, options]),
  ],
  takeMany: [
    ...[undefined, ...NOT_OPTIONS, {}, { limit: 1, limti: 2 }].map((options) => [options]),
    ...withOption("limit", NOT_COUNTS).map((options) => [options]),
    ...withOption(
      "timeout",
      NOT_DURATIONS.filter((value) => value !== Infinity),
    ).map((options) => [{ limit: 1, ...options }]),
    ...withOption("wait", NOT_DURATIONS).map((options) => [{ limit: 1, ...options }]),
  ],
  subscribe: [
    ...NOT_FUNCTIONS.map((handler) => [handler]),
    ...NOT_SUBSCRIBE.map((options) => [nothing, options]),
    ...withOption("orderBy", [null, "key", {}]).map((options) => [nothing, options]),
    [nothing, { unknown: "ack" }],
    ...withOption("timeLimit", [...NOT_DURATIONS, 0]).map((options) => [nothing, options]),
    ...withOption("grace", NOT_DURATIONS).map((options) => [nothing, { timeLimit: 1, ...options }]),
    [nothing, { grace: 5 }],
  ],
  subscribeBatch: [
    ...NOT_FUNCTIONS.map((handler) => [handler, { limit: 1 }]),
    ...[undefined, null, "x", 7, {}].map((options) => [nothing, options]),
    ...withOption("concurrency", NOT_COUNTS).map((options) => [nothing, { limit: 1, ...options }]),
    [nothing, { limit: 1, onError: "x" }],
    ...withOption("limit", NOT_COUNTS).map((options) => [nothing, options]),
    ...withOption("wait", NOT_DURATIONS).map((options) => [nothing, { limit: 1, ...options }]),
    ...withOption("timeLimit", [...NOT_DURATIONS, 0]).map((options) => [
      nothing,
      { limit: 1, ...options },
    ]),
    [nothing, { limit: 1, grace: 5 }],
    [nothing, { limit: 1, orderBy: nothing }],
  ],
  route: [
    ...[undefined, null, "x", 7, [], {}, new Map([["a", nothing]])].map((routes) => [routes]),
    ...NOT_FUNCTIONS.map((handler) => [{ a: handler }]),
    ...["", ":a", "a:", "\ud800"].map((name) => [{ [name]: nothing }]),
    ...NOT_SUBSCRIBE.map((options) => [{ a: nothing }, options]),
    ...withOption("unknown", [null, "drop", 7]).map((options) => [{ a: nothing }, options]),
    ...withOption("timeLimit", [...NOT_DURATIONS, 0]).map((options) => [{ a: nothing }, options]),
  ],
};

/** Those of any queue with an option that only a reliable one takes. */
const WITH_HEADERS = ["offer", "offerAt", "offerMany"];

const OF_DELIVERY: Readonly<Record<string, Calls>> = {
  ack: NOT_OPTIONS.map((options) => [options]),
  nack: [
    ...NOT_OPTIONS.map((options) => [options]),
    ...withOption("delay", NOT_DURATIONS).map((options) => [options]),
    ...withOption("reason", [null, 7, {}]).map((options) => [options]),
  ],
  reject: [
    ...[null, 7, {}].map((reason) => [reason]),
    ...NOT_OPTIONS.map((options) => ["x", options]),
  ],
  extend: [
    ...[undefined, ...NOT_DURATIONS].map((duration) => [duration]),
    ...NOT_OPTIONS.map((options) => [1000, options]),
  ],
};

const OF_DEAD_LETTERS: Readonly<Record<string, Calls>> = {
  size: NOT_OPTIONS.map((options) => [options]),
  redrive: [
    ...NOT_IDS.map((id) => [id]),
    ...NOT_OPTIONS.map((options) => ["all", options]),
    ...withOption("delay", NOT_DURATIONS).map((options) => ["all", options]),
  ],
  remove: [
    ...[...NOT_IDS, "all"].map((id) => [id]),
    ...NOT_OPTIONS.map((options) => ["0-00000000000000000000000000000000", options]),
  ],
  clear: NOT_OPTIONS.map((options) => [options]),
};

afterEach(() => void vi.restoreAllMocks());

const methodsOf = (prototype: object) =>
  Object.entries(Object.getOwnPropertyDescriptors(prototype))
    .filter(([name, { value }]) => name !== "constructor" && typeof value === "function")
    .map(([name]) => name)
    .toSorted();

test("every method is tested here", () => {
  const own = [...methodsOf(ReliableQueue.prototype), ...WITH_HEADERS];
  expect(own.toSorted()).toEqual(Object.keys(OF_QUEUE).toSorted());
  expect(methodsOf(Delivery.prototype)).toEqual(Object.keys(OF_DELIVERY).toSorted());
  expect(methodsOf(DeadLetters.prototype)).toEqual(Object.keys(OF_DEAD_LETTERS).toSorted());
});

/** Calls a method with each of these arguments. Expects clear errors, and that nothing is sent. */
async function expectRefused(target: object, method: string, calls: Calls): Promise<void> {
  const sent = vi.spyOn(Redis.prototype, "sendCommand");
  for (const args of calls) {
    const call = async () =>
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- That it cannot be called so is the point.
      await (target as Record<string, (...args: unknown[]) => unknown>)[method]?.(...args);
    const outcome: unknown = await call().catch((error: unknown) => error);
    const what = `${method}(${JSON.stringify(args)}) gave ${String(outcome)}`;
    const isRefused = outcome instanceof TypeError || outcome instanceof RangeError;
    expect(isRefused, what).toBe(true);
    expect(String(outcome), what).toMatch(/ must /);
  }
  // Heartbeats of connections and beats of consumers continue.
  const names = sent.mock.calls.map(([{ name }]) => name);
  expect(names.filter((name) => name !== "time" && name !== "evalsha")).toEqual([]);
  sent.mockRestore();
}

describe("a queue", () => {
  test.each(Object.entries(OF_QUEUE))("%s", async (method, calls) => {
    const redis = newRedis();
    const line = newLine({ redis, transfer: false });
    const queue = line.getReliableQueue(uniqueName());
    await queue.offer("there", 60_000);
    await expectRefused(queue, method, calls);
    expect(await queue.size()).toBe(1);
  });
});

describe("a delivery", () => {
  test.each(Object.entries(OF_DELIVERY))("%s", async (method, calls) => {
    const queue = newLine({ redis: newRedis() }).getReliableQueue(uniqueName());
    await queue.offer("there", 0);
    const delivery = await queue.take();
    await expectRefused(delivery, method, calls);
    // It is still held.
    expect(await delivery.ack()).toBe(true);
  });
});

describe("the dead letters", () => {
  test.each(Object.entries(OF_DEAD_LETTERS))("%s", async (method, calls) => {
    const queue = newLine({ redis: newRedis() }).getReliableQueue(uniqueName());
    await queue.offer("dead", 0);
    await (await queue.take()).reject();
    await expectRefused(queue.deadLetters, method, calls);
    expect(await queue.deadLetters.size()).toBe(1);
  });
});
