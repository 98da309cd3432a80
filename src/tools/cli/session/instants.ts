import { checks } from "../../../inside.ts";
import { parseDuration, UsageError } from "./arguments.ts";

/**
 * Parses an instant relative to `now` (epoch ms), in local time unless it names a zone:
 *
 * - `09:00`: the next nine o'clock. `today 09:00`, `tomorrow 09:00`, `monday 09:00` (the next Monday). A day without a
 *   time is midnight. The day may also follow the time.
 * - `now`; `2h`: two hours from now.
 * - A date such as `2026-11-22T09:00`, and whatever `formatInstant` prints.
 * - Epoch milliseconds, with at least 12 digits: fewer are more likely seconds.
 *
 * Where clocks go back, a time occurs twice: the first one that has not passed is meant. Where they go forward, a time
 * is skipped: a bare time then means the next day's, and a time on that day is refused.
 *
 * @throws {UsageError} that names the option and the accepted forms, if the text is not an instant.
 */
export function parseInstant(option: string, text: string, now: number): number {
  const instant = readInstant(option, text, now);
  if (instant === undefined) {
    throw new UsageError(
      `${option} must be a time such as 09:00, "tomorrow 09:00" or "monday 09:00", a date such as 2026-11-22T09:00 or 2026-11-22T09:00Z, a duration from now on such as 2h, or epoch milliseconds, got ${JSON.stringify(text)}`,
    );
  }
  if (instant >= 0 && instant <= checks.YEAR_9999) return instant;
  throw new UsageError(
    `${option} must be between the years 1970 and 9999, got ${JSON.stringify(text)}; epoch is in milliseconds`,
  );
}

/** Joins the unquoted words of a time after `--at` (day, time and zone) into one argument. */
export function joinInstants(argv: readonly string[]): string[] {
  const joined: string[] = [];
  for (const word of argv) {
    const [option, last = ""] = [joined.at(-2), joined.at(-1)];
    const isInline = last.startsWith("--at=");
    const kinds = isInline || option === "--at" ? kindsOf(last.replace(/^--at=/, "")) : "";
    const kind = kindOf(word);
    if (kinds !== "" && kind !== "" && LEGAL.test(kinds + kind)) {
      joined.push(`${joined.pop()} ${word}`);
    }
    // A negative number on its own would be taken for an option.
    else if (last === "--at" && /^-\d/.test(word)) joined.push(`${joined.pop()}=${word}`);
    else joined.push(word);
  }
  return joined;
}

/** Undefined if the text is not an instant. */
function readInstant(option: string, text: string, now: number): number | undefined {
  if (/^\d{12,}$/.test(text)) return Number(text);
  if (text === "now") return now;
  if (/^\d[\d.]*(?:ms|[wdhms])/.test(text)) return Math.round(now + parseDuration(option, text));
  const kinds = kindsOf(text);
  const [first = "", second = "", third = ""] = wordsOf(text);
  switch (kinds) {
    case "t":
      return nextTime(first, now);
    case "n":
    case "nt":
      return onDay(option, daysOf(first, now), kinds === "n" ? undefined : second, now);
    case "tn":
      return onDay(option, daysOf(second, now), first, now);
    case "d":
    case "dt":
      return isDate(first)
        ? onDay(option, [partsOf(first)], kinds === "d" ? undefined : second, now)
        : undefined;
    case "dtz":
      return isDate(first) ? inZone(first, second, third) : undefined;
    default:
      return undefined;
  }
}

/** A date as year, month (from 0) and day. A day beyond the end of the month counts into the next. */
type Day = readonly [year: number, month: number, day: number];

/** When local clocks next show a time. */
function nextTime(time: string, now: number): number | undefined {
  for (let days = 0; days < 3; days++) {
    const found = momentsOf(dayAfter(now, days), clockOf(time)).find((one) => one >= now);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A time on the first of these days on which it has not passed, or else on the last. Defaults to midnight. */
function onDay(
  option: string,
  days: readonly Day[],
  time: string | undefined,
  now: number,
): number | undefined {
  const clock = clockOf(time ?? "0:00");
  for (const [i, day] of days.entries()) {
    const moments = momentsOf(day, clock);
    const isLast = i === days.length - 1;
    const near = new Date(...day, ...clock).getTime();
    // In some zones clocks go forward at midnight.
    if (moments.length === 0 && time === undefined) moments.push(near);
    if (moments.length === 0 && (isLast || near >= now)) {
      const date = new Date(Date.UTC(...day)).toISOString().slice(0, 10);
      throw new UsageError(`${option}: local clocks go forward on ${date} and skip ${time}`);
    }
    const found = moments.find((one) => one >= now);
    if (found !== undefined || isLast) return found ?? moments[0];
  }
  return undefined;
}

/** The days that a name can mean, nearest first. */
function daysOf(name: string, now: number): Day[] {
  const word = name.toLowerCase();
  if (word === "today") return [dayAfter(now, 0)];
  if (word === "tomorrow") return [dayAfter(now, 1)];
  const distance = (weekdayOf(word) - new Date(now).getDay() + 7) % 7;
  return [dayAfter(now, distance), dayAfter(now, distance + 7)];
}

function dayAfter(now: number, days: number): Day {
  const today = new Date(now);
  return [today.getFullYear(), today.getMonth(), today.getDate() + days];
}

function weekdayOf(word: string): number {
  return word.length < 3 ? -1 : WEEKDAYS.findIndex((one) => one.startsWith(word));
}

function inZone(date: string, time: string, zone: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d{2}):?(\d{2})$/.exec(zone) ?? [];
  const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * (sign === "-" ? -1 : 1);
  return Date.UTC(...partsOf(date), ...clockOf(time)) - offset * 60_000;
}

/** Whether the date exists: 30 February does not. */
function isDate(text: string): boolean {
  const [year, month, day] = partsOf(text);
  const date = new Date(Date.UTC(year, month, day));
  return date.getUTCFullYear() === year && date.getUTCDate() === day;
}

function partsOf(date: string): Day {
  const [year = 0, month = 0, day = 0] = date.split("-").map(Number);
  return [year, month - 1, day];
}

/** Hours, minutes, seconds and milliseconds. */
function clockOf(time: string): [number, number, number, number] {
  const [hours = 0, minutes = 0, seconds = 0] = time.split(":").map(Number);
  return [hours, minutes, Math.floor(seconds), Math.round((seconds % 1) * 1000)];
}

/** The words of a time, with `2026-11-22T09:00Z` split into its three parts. */
function wordsOf(text: string): string[] {
  return text
    .replace(/^(\d{4}-\d{2}-\d{2})T/, "$1 ")
    .replace(/(:\d{2}(?:\.\d+)?)(?=Z|[+-]\d)/, "$1 ")
    .split(" ");
}

/** The kinds of all words, a letter each. `w` is a word that may be a misspelt day; `?` is anything else. */
function kindsOf(text: string): string {
  return wordsOf(text)
    .map((word) => kindOf(word) || (/^[a-z]+$/i.test(word) ? "w" : "?"))
    .join("");
}

/** What a word is of a time: a date (d), the name of a day (n), a time of day (t), a zone (z), or none. */
function kindOf(word: string): "d" | "n" | "t" | "z" | "" {
  if (/^\d{4}-\d{2}-\d{2}$/.test(word)) return "d";
  if (TIME.test(word)) return "t";
  if (ZONE.test(word)) return "z";
  return /^(?:today|tomorrow)$/i.test(word) || weekdayOf(word.toLowerCase()) >= 0 ? "n" : "";
}

/**
 * Parts that are joined into one time. Misspelt days and misplaced zones are joined too, so that the error shows them.
 */
const LEGAL = /^(?:[dnw]tz?|tn?z?)$/;

const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

const TIME = /^(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,3})?)?$/;

const ZONE = /^(?:Z|UTC|[+-][01]\d:?[0-5]\d)$/;

/**
 * The instants (epoch ms) at which local clocks show a given time on a given day: usually one, two where clocks go
 * back, none where they go forward over it.
 */
function momentsOf(
  [year, month, day]: readonly [year: number, month: number, day: number],
  [hours, minutes, seconds, milliseconds]: readonly [number, number, number, number],
): number[] {
  const shown = Date.UTC(year, month, day, hours, minutes, seconds, milliseconds);
  // The offsets from UTC on either side of any clock change that day.
  const offsets = [shown - DAY, shown + DAY].map((near) => new Date(near).getTimezoneOffset());
  return [...new Set(offsets)]
    .map((offset) => shown + offset * MINUTE)
    .filter((moment) => moment - new Date(moment).getTimezoneOffset() * MINUTE === shown)
    .toSorted((a, b) => a - b);
}

const MINUTE = 60_000;
const DAY = 86_400_000;
