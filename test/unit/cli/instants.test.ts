import { describe, expect, onTestFinished, test } from "vitest";
import { joinInstants, parseInstant } from "../../../src/tools/cli/session/instants.ts";
import { formatInstant } from "../../../src/tools/view/instants.ts";

// A Sunday, half past ten in the morning here.
const NOW = new Date(2026, 10, 22, 10, 30).getTime();

const read = (text: string) => parseInstant("--at", text, NOW);

test("a date is in local time unless it names a zone", () => {
  expect(read("2026-11-22T09:00Z")).toBe(Date.UTC(2026, 10, 22, 9));
  expect(read("2026-11-22 09:00")).toBe(new Date(2026, 10, 22, 9).getTime());
  expect(read("2026-11-22")).toBe(new Date(2026, 10, 22).getTime());
  expect(read(formatInstant(1_795_359_664_000))).toBe(1_795_359_664_000);
  expect(read("2026-11-22 09:00:00 +01:00")).toBe(Date.UTC(2026, 10, 22, 8));
  expect(read("2026-11-22 09:00:00 UTC")).toBe(Date.UTC(2026, 10, 22, 9));
  expect(read("2026-11-22 9:00 -0130")).toBe(Date.UTC(2026, 10, 22, 10, 30));
  expect(read("2026-11-22T9:00:01.25Z")).toBe(Date.UTC(2026, 10, 22, 9, 0, 1, 250));
  expect(read("1795359664872")).toBe(1_795_359_664_872);
});

test.each<[text: string, day: number, hours?: number, minutes?: number]>([
  ["now", 22, 10, 30],
  ["09:00", 23, 9],
  ["9:00", 23, 9],
  ["10:30", 22, 10, 30],
  ["11:00", 22, 11],
  ["today 9:00", 22, 9],
  ["tomorrow", 23],
  ["tomorrow 09:00", 23, 9],
  ["Monday 09:00", 23, 9],
  ["9:00 monday", 23, 9],
  ["2026-11-22T9:00", 22, 9],
  ["sat", 28],
  ["sunday 09:00", 29, 9],
  ["sunday 11:15", 22, 11, 15],
  ["2h", 22, 12, 30],
  ["1d30m", 23, 11],
])("%s is the %ith", (text, day, hours = 0, minutes = 0) => {
  expect(read(text)).toBe(new Date(2026, 10, day, hours, minutes).getTime());
});

test("tomorrow at nine is at nine, even after a night of 23 or 25 hours", () => {
  for (let day = 0; day < 366; day++) {
    const at = new Date(parseInstant("--at", "tomorrow 09:00", NOW + day * 86_400_000));
    expect([at.getHours(), at.getMinutes()]).toEqual([9, 0]);
  }
});

function inBerlin(text: string, now: string): string {
  const { TZ: zone } = process.env;
  process.env["TZ"] = "Europe/Berlin";
  onTestFinished(() => {
    if (zone === undefined) delete process.env["TZ"];
    else process.env["TZ"] = zone;
  });
  return new Date(parseInstant("--at", text, Date.parse(now))).toISOString();
}

describe("where clocks change", () => {
  test.each([
    ["02:45", "2026-10-25T00:50:00Z", "2026-10-25T01:45:00.000Z"],
    ["02:45", "2026-10-25T00:40:00Z", "2026-10-25T00:45:00.000Z"],
    ["02:45", "2026-10-25T01:50:00Z", "2026-10-26T01:45:00.000Z"],
    ["today 02:45", "2026-10-25T00:50:00Z", "2026-10-25T01:45:00.000Z"],
    ["sunday 02:45", "2026-10-25T00:50:00Z", "2026-10-25T01:45:00.000Z"],
    ["02:30", "2026-03-29T00:30:00Z", "2026-03-30T00:30:00.000Z"],
    ["sunday 02:30", "2026-03-29T10:00:00Z", "2026-04-05T00:30:00.000Z"],
  ])("%s at %s is %s", (text, now, expected) => {
    expect(inBerlin(text, now)).toBe(expected);
  });

  test("a time that they skip that day is refused, with the date", () => {
    for (const text of ["tomorrow 02:30", "2026-03-29T02:30", "2:30 sunday"]) {
      expect(() => inBerlin(text, "2026-03-28T10:00:00Z")).toThrow(
        "--at: local clocks go forward on 2026-03-29",
      );
    }
  });
});

test.each(["9999999999999999", "99999999999d", "1969-12-30T00:00Z"])("%s is too far", (text) => {
  expect(() => read(text)).toThrow("--at must be between the years 1970 and 9999, got");
});

describe("not an instant:", () => {
  test.each([
    "",
    "soon",
    "tomorow 9:00",
    "9",
    "24:00",
    "2026-11-22T24:00",
    "2026-11-22 25:00 UTC",
    "tomorrow 09:00 UTC",
    "-2h",
    "9:60",
    "2026",
    "2026-13-01",
    "22.11.2026",
    "2026-02-30",
    "2026-02-30T09:00Z",
    "1795359664",
    "2x",
  ])("%j", (text) => {
    expect(() => read(text)).toThrow(
      `--at must be a time such as 09:00, "tomorrow 09:00" or "monday 09:00", a date`,
    );
  });
});

test.each([
  ["due --at tomorrow 09:00 --json", ["due", "--at", "tomorrow 09:00", "--json"]],
  ["due --at=mon 9:00", ["due", "--at=mon 9:00"]],
  ["due --at 2026-11-22 09:00", ["due", "--at", "2026-11-22 09:00"]],
  ["due --at 09:00 orders", ["due", "--at", "09:00", "orders"]],
  ["due --at 09:00 tomorrow orders", ["due", "--at", "09:00 tomorrow", "orders"]],
  ["due --at 2026-11-22 09:00:00 UTC x", ["due", "--at", "2026-11-22 09:00:00 UTC", "x"]],
  ["due --at 2026-11-22 09:00 -01:00", ["due", "--at", "2026-11-22 09:00 -01:00"]],
  ["due --at=2026-11-22T09:00 UTC", ["due", "--at=2026-11-22T09:00 UTC"]],
  ["due --at tomorow 09:00 UTC", ["due", "--at", "tomorow 09:00 UTC"]],
  ["due --at 2h monday", ["due", "--at", "2h", "monday"]],
  ["--at -2h", ["--at=-2h"]],
  ["--at=mon 9:00", ["--at=mon 9:00"]],
  ["get tomorrow 09:00", ["get", "tomorrow", "09:00"]],
])("%s: the words of a time become one argument", (line, words) => {
  expect(joinInstants(line.split(" "))).toEqual(words);
});
