import { expect, test } from "vitest";
import { nextWithin, type NextWithinOptions } from "../../../src/handles/next-within.ts";

const BERLIN = "Europe/Berlin";
const OFFICE: NextWithinOptions = {
  timeZone: BERLIN,
  days: ["mon", "tue", "wed", "thu", "fri"],
  from: "09:00",
  to: "17:30",
  except: ["2026-12-25"],
};

test.each([
  ["inside", "2026-11-26T10:00Z", "2026-11-26T10:00Z"],
  ["before it opens", "2026-11-26T05:00Z", "2026-11-26T08:00Z"],
  ["as it opens", "2026-11-26T08:00Z", "2026-11-26T08:00Z"],
  ["the last millisecond", "2026-11-26T16:29:59.999Z", "2026-11-26T16:29:59.999Z"],
  ["as it closes", "2026-11-26T16:30Z", "2026-11-27T08:00Z"],
  ["on Friday evening", "2026-11-27T18:00Z", "2026-11-30T08:00Z"],
  ["before a holiday and a weekend", "2026-12-24T17:00Z", "2026-12-28T08:00Z"],
  ["over the switch in spring", "2026-03-27T17:00Z", "2026-03-30T07:00Z"],
  ["over the switch in autumn", "2026-10-23T16:00Z", "2026-10-26T08:00Z"],
])("business hours: %s", (_, instant, expected) => {
  expect(nextWithin(new Date(instant), OFFICE)).toEqual(new Date(expected));
});

test("a night that is not quiet belongs to the day on which it begins", () => {
  const night: NextWithinOptions = { timeZone: BERLIN, from: "22:00", to: "06:00", days: ["sat"] };
  // Sunday, 05:59 and 06:00 in Berlin.
  expect(nextWithin(new Date("2026-11-29T04:59Z"), night)).toEqual(new Date("2026-11-29T04:59Z"));
  expect(nextWithin(new Date("2026-11-29T05:00Z"), night)).toEqual(new Date("2026-12-05T21:00Z"));
});

test("a window that opens in an hour that is left out opens behind it", () => {
  const early: NextWithinOptions = { timeZone: BERLIN, from: "02:15", to: "04:00" };
  expect(nextWithin(new Date("2026-03-28T23:00Z"), early)).toEqual(new Date("2026-03-29T01:00Z"));
});

test("a window that lies in the hour that is left out does not open that day", () => {
  const inside: NextWithinOptions = { timeZone: BERLIN, from: "02:10", to: "02:50" };
  expect(nextWithin(new Date("2026-03-28T23:00Z"), inside)).toEqual(new Date("2026-03-30T00:10Z"));
});

test("times in an hour that comes twice mean the first", () => {
  const early: NextWithinOptions = { timeZone: BERLIN, from: "01:00", to: "02:30" };
  // The first 02:30 is 00:30 UTC, the second one 01:30.
  expect(nextWithin(new Date("2026-10-25T00:29Z"), early)).toEqual(new Date("2026-10-25T00:29Z"));
  expect(nextWithin(new Date("2026-10-25T00:30Z"), early)).toEqual(new Date("2026-10-26T00:00Z"));
});

test("without times the whole of a day", () => {
  const weekend: NextWithinOptions = { timeZone: "Asia/Tehran", days: ["fri"] };
  const opens = new Date("2026-11-26T20:30Z");
  expect(nextWithin(new Date("2026-11-26T12:00Z"), weekend)).toEqual(opens);
  expect(nextWithin(opens, weekend)).toEqual(opens);
  expect(nextWithin(new Date("2026-11-27T20:30Z"), weekend)).toEqual(new Date("2026-12-03T20:30Z"));
});

test("weeks of exceptions are passed over", () => {
  const except = Array.from({ length: 400 }, (_, i) =>
    new Date(Date.UTC(2026, 0, 1 + i)).toISOString().slice(0, 10),
  );
  const found = nextWithin(Date.UTC(2026, 0, 1), { timeZone: "UTC", days: ["mon"], except });
  expect(found).toEqual(new Date("2027-02-08T00:00Z"));
});

test("an instant may be a local time of another zone", () => {
  const at = nextWithin({ local: "2026-11-26T20:00", timeZone: "America/New_York" }, OFFICE);
  expect(at).toEqual(new Date("2026-11-27T08:00Z"));
});

test.each<[NextWithinOptions, string]>([
  [
    { timeZone: "Mars" },
    'timeZone must be the name of a time zone such as "Europe/Berlin", got "Mars"',
  ],
  [
    { timeZone: BERLIN, from: "9:00" },
    'from must be a time of day such as "09:00", up to "24:00", got "9:00"',
  ],
  [
    { timeZone: BERLIN, to: "24:01" },
    'to must be a time of day such as "09:00", up to "24:00", got "24:01"',
  ],
  [
    { timeZone: BERLIN, from: "09:00", to: "09:00" },
    'from and to must enclose a part of a day, got "09:00" and "09:00"',
  ],
  [
    { timeZone: BERLIN, from: "24:00", to: "06:00" },
    'from and to must enclose a part of a day, got "24:00" and "06:00"',
  ],
  [{ timeZone: BERLIN, days: [] }, "days must name a day of the week, got none"],
  [
    { timeZone: BERLIN, days: ["monday" as "mon"] },
    'days must be of sun, mon, tue, wed, thu, fri, sat, got "monday"',
  ],
  [
    { timeZone: BERLIN, except: ["2026-02-30"] },
    'except must be a day that exists, such as "2026-12-25", got "2026-02-30"',
  ],
  [{ timezone: BERLIN } as unknown as NextWithinOptions, 'got "timezone"'],
])("refused: %j", (options, message) => {
  expect(() => nextWithin(Date.now(), options)).toThrow(message);
});
