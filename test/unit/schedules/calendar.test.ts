import { expect, onTestFinished, test, vi } from "vitest";
import {
  cronCalendar,
  everyCalendar,
  type ScheduleCalendar,
} from "../../../src/schedules/calendar.ts";

const at = (calendar: ScheduleCalendar, from: number) => calendar.next(new Date(from))?.getTime();

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

test.each([
  ["30 30 2", "it must have five fields (minute, hour, day of month, month, weekday), with"],
  ["-1", "it must have five fields"],
  ["daily", "it must have five fields"],
  ["0 0 0 0 0", "day of month must be 1 to 31, got 0"],
  ["-1 * * * *", "minute must be 0 to 59, got -1"],
  ["0 9 -1 * *", "day of month must be 1 to 31, got -1"],
  ["0 9 * 13 *", "month must be 1 to 12, got 13"],
  ["0 9 * * 8#2", "weekday must be 0 to 7, got 8#2"],
  ["0 9,17-24 * * *", "hour must be 0 to 23, got 17-24"],
  ["0 9 * * 1-", "illegal upper range"],
])("%j is refused, and the error names what is wrong", async (pattern, why) => {
  await expect(cronCalendar(pattern, "UTC")).rejects.toThrow(
    `cron must be a cron pattern, got ${JSON.stringify(pattern)}: `,
  );
  await expect(cronCalendar(pattern, "UTC")).rejects.toThrow(why);
});

/** Patterns of other schedulers that croner alone reads with another meaning, or refuses in riddles; and the way out. */
test.each([
  // Quartz: 1 is Sunday.
  [
    "0 0 9 ? * 2-6",
    'beside "?" numbers of weekdays have two meanings: write MON-FRI if it is from Quartz or AWS, TUE-SAT if it is from Unix or Spring',
  ],
  ["0 15 10 ? * 6L", "write FRIL if"],
  ["0 0 12 ? * 1", "write SUN if"],
  ["0 15 10 ? * 6#3 2027", "write FRI#3 if"],
  ["0 0 9 ? * 2,4,6 *", "write MON,WED,FRI if"],
  ["0 9 ? * 0", "two meanings: write SUN if it is from Unix"],
  ["0 0/15 * * * ?", "write 0-59/15 for 0/15"],
  ["0 0 12 1/5 * ?", "write 1-31/5 for 1/5"],
  // AWS: minute, hour, day of month, month, weekday, year.
  ["0 10 * * ? *", 'from the minute to the year: write "0 10 * * ?"'],
  ["0/15 8 * * ? *", 'write "0-59/15 8 * * ?"'],
  ["0 10 ? * 2-6 *", 'write "0 10 ? * MON-FRI"'],
  ["0 10 ? * MON-FRI *", 'write "0 10 ? * MON-FRI"'],
  ["15 10 ? * 6L 2027-2030", 'write "0 15 10 ? * FRIL 2027-2030"'],
  ["cron(0 10 * * ? *)", 'write "0 10 * * ?"'],
  ["cron(0 10 * * *)", "leave cron( ) out"],
  ["rate(5 minutes)", "the option every"],
  // robfig, Kubernetes.
  ["@every 5m", "the option every"],
  ["CRON_TZ=Europe/Berlin 0 9 * * *", "the option timeZone"],
  // Jenkins, systemd, a date.
  ["H H * * *", "the option spread"],
  ["Mon..Fri *-*-* 10:00:00", "write a time of day as minute and hour"],
  ["2027-01-01T10:00", "one single instant is for offerAt"],
  ["? 9 * * *", '"?" must stand alone, as day of month or weekday'],
  ["0 9 ?/2 * *", '"?" must stand alone'],
])("%j of another scheduler is refused with the way out", async (pattern, wayOut) => {
  await expect(cronCalendar(pattern, "UTC")).rejects.toThrow(RangeError);
  await expect(cronCalendar(pattern, "UTC")).rejects.toThrow(wayOut);
});

test("what the way out says is legal, and means the same", async () => {
  expect(await days("0 15 10 ? * FRIL")).toEqual(await days("15 10 * * 5L"));
  expect(await days("0 0 9 ? * SUN-THU *")).toEqual(await days("0 9 * * 0-4"));
  expect(await days("0 10 ? * FRI#3")).toEqual(await days("0 10 * * 5#3"));
  expect(await days("0 10 * * ?")).toEqual(await days("0 10 * * *"));
  expect(await days("0-59/15 8 * * ?")).toEqual(await days("*/15 8 * * *"));
  expect(await days("@Daily")).toEqual(await days("0 0 * * *"));
});

test("`every` counts from the epoch, shifted by its phase", () => {
  const plain = everyCalendar(600_000);
  expect([at(plain, -1), at(plain, 0), at(plain, 599_999)]).toEqual([0, 600_000, 600_000]);
  const shifted = everyCalendar(600_000, 1_000);
  expect([at(shifted, 0), at(shifted, 1_000)]).toEqual([1_000, 601_000]);
});

/** The minutes at which a pattern first comes. */
async function days(pattern: string): Promise<string[]> {
  const calendar = await cronCalendar(pattern, "UTC");
  const found: string[] = [];
  for (let from = Date.UTC(2027, 0, 1); found.length < 6;) {
    from = at(calendar, from)!;
    found.push(new Date(from).toUTCString().slice(0, 22));
  }
  return found;
}
