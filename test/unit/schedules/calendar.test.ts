import { expect, onTestFinished, test, vi } from "vitest";
import { cronCalendar, everyCalendar, type Calendar } from "../../../src/schedules/calendar.ts";

const at = (calendar: Calendar, from: number) => calendar.next(new Date(from))?.getTime();

test("without croner, a cron pattern says what to install", async () => {
  vi.doMock("croner", () => {
    throw new Error("Cannot find package 'croner'");
  });
  onTestFinished(() => {
    vi.doUnmock("croner");
  });
  // An earlier test of this process may have loaded it.
  vi.resetModules();
  const fresh = await import("../../../src/schedules/calendar.ts");
  await expect(fresh.cronCalendar("0 9 * * *", "UTC")).rejects.toThrow(
    new TypeError("cron needs the package croner: npm install croner"),
  );
});

test("a pattern that is none is refused, with its reason", async () => {
  await expect(cronCalendar("30 30 2", "UTC")).rejects.toThrow(
    /^cron must be a cron pattern, got "30 30 2": /,
  );
});

test("`every` counts from the epoch, shifted by its phase", () => {
  const plain = everyCalendar(600_000);
  expect([at(plain, -1), at(plain, 0), at(plain, 599_999)]).toEqual([0, 600_000, 600_000]);
  const shifted = everyCalendar(600_000, 1_000);
  expect([at(shifted, 0), at(shifted, 1_000)]).toEqual([1_000, 601_000]);
});
