import { expect, test } from "vitest";
import type { ScheduleOptions } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const DAILY = { cron: "30 2 * * *", payload: "x" } as const;
const EVERY = { every: 60_000, payload: "x" } as const;

test.each<[what: string, options: unknown, error: string]>([
  ["none", { payload: "x" }, "a schedule must have either every or cron, got neither"],
  ["both", { ...DAILY, every: 1000 }, "a schedule must have either every or cron, got both"],
  ["no payload", { every: 1000 }, "a schedule must have a payload"],
  ["a misspelt option", { ...DAILY, timezone: "UTC" }, 'got "timezone"'],
  ["too often", { every: 10, payload: "x" }, "every must be a whole number between 100 and"],
  ["a phase of cron", { ...DAILY, phase: 5 }, "phase goes with every"],
  [
    "a phase above",
    { ...EVERY, phase: 60_000 },
    "phase must be a whole number between 0 and 59999",
  ],
  [
    "an unknown zone",
    { ...DAILY, timeZone: "Europe/Berlim" },
    'such as "Europe/Berlin", got "Europe/Berlim"',
  ],
  ["no pattern", { ...DAILY, cron: "x" }, 'cron must be a cron pattern, got "x"'],
  ["an illegal pattern", { ...DAILY, cron: "61 * * * *" }, "minute must be 0 to 59, got 61"],
  ["no calendar", { ...DAILY, cron: {} }, "cron must be a pattern or an object with next(from)"],
  [
    "a cron that never comes",
    { ...DAILY, cron: "0 0 30 2 *" },
    'cron must come at some time, got "0 0 30 2 *"',
  ],
  [
    "a calendar that never comes",
    { ...DAILY, cron: { next: () => null } },
    "got a calendar without a date",
  ],
  [
    "a calendar that stands still",
    { ...DAILY, cron: { next: (from: Date) => from } },
    "must return a later Date or null",
  ],
  [
    "an exclusion of all",
    { ...DAILY, except: [{ from: new Date("2020-01-01"), to: new Date("9999-01-01") }] },
    "except must leave a tick",
  ],
  [
    "no such day",
    { ...DAILY, except: ["2026-02-30"] },
    'except[0] must be a day that exists, such as "2026-12-25", got "2026-02-30"',
  ],
  [
    "jitter of the interval",
    { ...EVERY, jitter: 60_000 },
    "jitter must be below the interval between two ticks, 60000 ms, got 60000",
  ],
  [
    "jitter of a pattern",
    { ...DAILY, jitter: 90_000_000 },
    "jitter must be below the interval between two ticks, 86400000 ms",
  ],
  [
    "spread",
    { ...EVERY, spread: 70_000 },
    "spread must be below the interval between two ticks, 60000 ms, got 70000",
  ],
  [
    "an end before the start",
    { ...EVERY, startAt: 2e12, endAt: 1.9e12 },
    "endAt must not be before startAt",
  ],
  [
    "another misfire",
    { ...EVERY, misfire: "twice" },
    'misfire must be one of "once", "all", "skip", got "twice"',
  ],
  [
    "overlap on a plain queue",
    { ...EVERY, overlap: "skip" },
    'overlap "skip" needs a reliable queue',
  ],
  ["overlap wait on one", { ...EVERY, overlap: "wait" }, 'overlap "wait" needs a reliable queue'],
  ["an empty lane", { ...EVERY, lane: "" }, "lane must have 1 to 100 bytes, got 0"],
  ["a lane that is no text", { ...EVERY, lane: 7 }, "lane must be a string, got number"],
  [
    "a priority beyond",
    { ...EVERY, priority: 101 },
    "priority must be a whole number between -100 and 100",
  ],
  ["a limit of nothing", { ...EVERY, limit: 0 }, "limit must be a whole number between 1"],
  ["a version of a half", { ...EVERY, version: 1.5 }, "version must be a whole number"],
])("%s is refused, and nothing is stored", async (_, options, error) => {
  const name = uniqueName("refused");
  const orders = newLine().getDelayedQueue<string>(name);
  await expect(orders.schedules.upsert("s", options as ScheduleOptions<string>)).rejects.toThrow(
    error,
  );
  expect(await newRedis().keys(`*{${name}}*`)).toEqual([]);
});

test.each([
  ["", "schedule name must have 1 to 100 bytes"],
  ["x".repeat(101), "schedule name must have 1 to 100 bytes of UTF-8, got 101"],
  ["a\nb", "schedule name must have no control characters"],
  [5, "schedule name must be a string, got number"],
])("the name %.20j is refused", async (name, error) => {
  const orders = newLine().getDelayedQueue<string>(uniqueName("refused"));
  await expect(orders.schedules.upsert(name as string, EVERY)).rejects.toThrow(error);
});

test("a schedule whose end has passed is no mistake: it was declared before", async () => {
  const orders = newLine().getDelayedQueue<string>(uniqueName("refused"));
  const over = { ...DAILY, cron: "0 0 30 2 *", endAt: new Date("2026-01-01") };
  expect(await orders.schedules.upsert("s", over)).toEqual({ outcome: "added", next: [] });
});

test("a payload that cannot be encoded is refused", async () => {
  const orders = newLine().getDelayedQueue(uniqueName("refused"));
  await expect(orders.schedules.upsert("s", { every: 1000, payload: new Map() })).rejects.toThrow(
    "cannot encode a payload",
  );
});
