import { expect, test } from "vitest";
import { localIn, Zone } from "../../../src/time/zone.ts";

const QUARTER = 15 * 60_000;

// Zones whose clocks change by half an hour, by two hours, around midnight, twice around Ramadan; and one that left out
// a whole day.
const CHANGES = [
  ["Europe/Berlin", "2026-03-29"],
  ["Europe/Berlin", "2026-10-25"],
  ["America/New_York", "2027-03-14"],
  ["America/New_York", "2027-11-07"],
  ["Australia/Lord_Howe", "2026-04-05"],
  ["Australia/Lord_Howe", "2026-10-04"],
  ["Antarctica/Troll", "2026-03-29"],
  ["Antarctica/Troll", "2026-10-25"],
  ["Africa/Casablanca", "2026-02-15"],
  ["Africa/Casablanca", "2026-03-22"],
  ["Africa/Cairo", "2026-04-24"],
  ["America/Nuuk", "2026-03-28"],
  ["Pacific/Chatham", "2026-09-27"],
  ["Pacific/Apia", "2011-12-30"],
  ["Asia/Kathmandu", "2026-05-01"],
  ["UTC", "2026-05-01"],
] as const;

test.each(CHANGES)("%s, %s: a local time is the first instant that shows it", (name, day) => {
  const zone = zoneOf(name);
  const { first, instants } = shownAround(name, Date.parse(day));
  for (const [text, instant] of first) expect(zone.instantOf(local(text)), text).toBe(instant);
  for (const [instant, text] of instants) expect(zone.localAt(instant)).toBe(local(text));
});

test.each(CHANGES)("%s, %s: a time that is left out is the instant behind it", (name, day) => {
  const zone = zoneOf(name);
  const { first } = shownAround(name, Date.parse(day));
  const shown = [...first.keys()].toSorted();
  let leftOut = 0;
  for (let at = local(shown[0] as string); at < local(shown.at(-1) as string); at += QUARTER) {
    const text = new Date(at).toISOString().slice(0, 16);
    if (first.has(text)) continue;
    leftOut++;
    const next = shown.find((other) => other > text) as string;
    expect(zone.instantOf(at), text).toBe(first.get(next));
  }
  const isForward = /03-29|03-14|10-04|2026-03-22|04-24|03-28|09-27|2011/.test(day);
  expect(leftOut > 0, `${leftOut} quarters are left out`).toBe(isForward);
});

test("milliseconds and seconds are kept, before 1970 as well", () => {
  const zone = zoneOf("Europe/Berlin");
  expect(zone.localAt(-1)).toBe(Date.parse("1970-01-01T00:59:59.999Z"));
  expect(zone.instantOf(local("2026-07-01T12:00:01.234"))).toBe(
    Date.parse("2026-07-01T10:00:01.234Z"),
  );
});

test("there is no other text of a local time", () => {
  expect(local("2028-02-29T23:59")).toBe(Date.parse("2028-02-29T23:59Z"));
  for (const text of [
    "2026-02-29T09:00",
    "2026-02-30T09:00",
    "2026-13-01T09:00",
    "2026-12-24T24:00",
    "2026-12-24T09:60",
    "2026-12-24T09:00Z",
    "2026-12-24T09:00+01:00",
    "2026-12-24 09:00",
    "2026-12-24",
    "",
  ]) {
    expect(localIn(text), text).toBeUndefined();
  }
});

test("a zone that nobody knows", () => {
  expect(Zone.named("Europe/Atlantis")).toBeUndefined();
  expect(Zone.named("")).toBeUndefined();
});

/** What clocks show in three days: each quarter of an hour, and the first instant of each text. */
function shownAround(timeZone: string, day: number) {
  // Another way to the same data.
  const format = new Intl.DateTimeFormat("sv-SE", {
    timeZone,
    dateStyle: "short",
    timeStyle: "short",
  });
  const first = new Map<string, number>();
  const instants: [number, string][] = [];
  for (let at = day - 36 * 3_600_000; at < day + 60 * 3_600_000; at += QUARTER) {
    const text = format.format(at).replace(" ", "T");
    instants.push([at, text]);
    if (!first.has(text)) first.set(text, at);
  }
  return { first, instants };
}

function zoneOf(name: string): Zone {
  const zone = Zone.named(name);
  if (zone === undefined) throw new Error(`this Node.js does not know ${name}`);
  return zone;
}

function local(text: string): number {
  const at = localIn(text);
  if (at === undefined) throw new Error(`not a local time: ${text}`);
  return at;
}
