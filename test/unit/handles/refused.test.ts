import { expect, onTestFinished, test } from "vitest";
import { checkedConditions } from "../../../src/handles/conditions.ts";
import {
  checkedSchedule,
  checkTicks,
  type ScheduleOptions,
} from "../../../src/handles/schedule-options.ts";
import { Delayline, defineQueue } from "../../../src/index.ts";
import { checkOptions } from "../../../src/queue/checks.ts";
import { queueSettings } from "../../../src/queue/options.ts";
import { cronCalendar } from "../../../src/schedules/calendar.ts";

/** A client that never connects: it opens no queue. */
function newLine(): Delayline {
  const line = new Delayline();
  onTestFinished(() => line.close());
  return line;
}

function checkSchedule(own: object): void {
  const options = { payload: "x", ...own } as ScheduleOptions;
  checkedSchedule("s", options, { isReliable: false, encode: () => Buffer.from("x") });
}

test.each<[given: unknown, got: string]>([
  [
    () => true,
    "a function; Redis asks as it moves the message, and cannot call it: name a key and what it must hold",
  ],
  ["order:7", "a string"],
  [true, "a boolean"],
  [null, "null"],
])("onlyIf of %s", (given, got) => {
  expect(() => checkedConditions({ onlyIf: given as never }, false)).toThrow(
    new TypeError(`onlyIf must be an object such as { key, is }, got ${got}`),
  );
});

test("a function in place of options is named, not printed", () => {
  expect(() => checkOptions("take option", () => "secret", ["limit"])).toThrow(
    new TypeError("take options must be an object, got a function; such as { limit }"),
  );
});

test("keepHandled of a plain queue", () => {
  expect(() => queueSettings({ keepHandled: 1000 } as never)).toThrow(
    'got "keepHandled"; keepHandled is an option of getReliableQueue',
  );
});

test("instants in the wrong order are shown as dates", () => {
  const [early, late] = [Date.UTC(2026, 11, 1), Date.UTC(2026, 11, 24)];
  expect(() => checkSchedule({ every: 1000, startAt: late, endAt: early })).toThrow(
    "endAt must not be before startAt, got 2026-12-01T00:00:00.000Z and 2026-12-24T00:00:00.000Z",
  );
  expect(() => checkSchedule({ every: 1000, except: [{ from: late, to: early }] })).toThrow(
    "except[0].to must be after from, got 2026-12-01T00:00:00.000Z and 2026-12-24T00:00:00.000Z",
  );
});

test.each([
  ["0 0 30 2 *", "no month in it has such a day"],
  ["0 0 31 4,6 *", "no month in it has such a day"],
  ["0 0 0 1 1 * 2020", "its year is over, or no month in it has such a day"],
])("the pattern %s never comes, and why", async (cron, why) => {
  const calendar = await cronCalendar(cron, "UTC");
  const rule = {
    cron,
    timeZone: "UTC",
    misfire: "once",
    misfireGrace: 0,
    maxCatchUp: 0,
    overlap: "allow",
  } as const;
  expect(() => checkTicks("s", rule, calendar, Date.UTC(2026, 0, 1))).toThrow(
    new RangeError(`cron must come at some time, got "${cron}", which never comes: ${why}`),
  );
});

test.each<[method: string, open: (line: Delayline, name: never) => unknown]>([
  ["getReliableQueue", (line, name) => line.getReliableQueue(name)],
  ["getDelayedQueue", (line, name) => line.getDelayedQueue(name)],
  ["getBlockingQueue", (line, name) => line.getBlockingQueue(name)],
])("%s of a definition says how to open it", (_, open) => {
  const definition = defineQueue("orders", { reliable: true });
  expect(() => open(newLine(), definition as never)).toThrow(
    new TypeError("queue name must be a string, got object; open a definition with line.open"),
  );
  expect(() => open(newLine(), { name: "orders" } as never)).toThrow("; pass its name");
});
