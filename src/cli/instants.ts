import { parseDuration } from "./durations.ts";
import { UsageError } from "./usage-error.ts";

/**
 * Reads an instant, as seen from `now` (epoch ms). In the time of this machine, unless a date names a zone:
 *
 * - `09:00`: the next nine o'clock; `today 09:00`, `tomorrow 09:00`; `monday 09:00`: the next one. Without a time of day it
 *   is midnight.
 * - `now`; `2h`: in two hours.
 * - A date such as `2026-11-22T09:00`, and whatever `formatInstant` has made.
 * - Epoch milliseconds, of 12 digits at least: what is shorter is rather seconds.
 *
 * @throws {UsageError} naming the option and what is accepted, if it is none.
 */
export function parseInstant(option: string, text: string, now: number): number {
  const instant = /^\d{12,16}$/.test(text)
    ? Number(text)
    : (parseDay(text, now) ?? parseDate(text));
  if (instant >= 0) return instant;
  if (/^\d[\d.]*(?:ms|[dhms])/.test(text)) return Math.round(now + parseDuration(option, text));
  throw new UsageError(
    `${option} must be a time such as 09:00, "tomorrow 09:00" or "monday 09:00", a date such as 2026-11-22T09:00 or 2026-11-22T09:00Z, a duration from now on such as 2h, or epoch milliseconds, got ${JSON.stringify(text)}`,
  );
}

/** Words of a command line in which the day and the time of day behind `--at` are one, though nobody has quoted them. */
export function joinInstants(argv: readonly string[]): string[] {
  const joined: string[] = [];
  for (const word of argv) {
    const [option, last] = joined.slice(-2);
    const day = option === "--at" ? last : /^--at=(.*)$/.exec(joined.at(-1) ?? "")?.[1];
    if (day !== undefined && DAY.test(day) && TIME.test(word))
      joined.push(`${joined.pop()} ${word}`);
    else joined.push(word);
  }
  return joined;
}

/** A day by its name, a time of day, or both; undefined: it is neither. */
function parseDay(text: string, now: number): number | undefined {
  if (text === "now") return now;
  const [, name = "", time = ""] = /^([a-z]*) ?([\d:]*)$/i.exec(text) ?? [];
  if (name + time === "" || (time !== "" && !TIME.test(time))) return undefined;
  const [hours = 0, minutes = 0, seconds = 0] = time.split(":").map(Number);
  const today = new Date(now);
  const daysOn = (days: number) =>
    new Date(
      today.getFullYear(),
      today.getMonth(),
      today.getDate() + days,
      hours,
      minutes,
      seconds,
    ).getTime();
  const day = name.toLowerCase();
  if (day === "today") return daysOn(0);
  if (day === "tomorrow") return daysOn(1);
  if (day === "") return daysOn(daysOn(0) < now ? 1 : 0);
  const weekday = day.length < 3 ? -1 : WEEKDAYS.findIndex((one) => one.startsWith(day));
  if (weekday === -1) return undefined;
  const distance = (weekday - today.getDay() + 7) % 7;
  return daysOn(daysOn(distance) < now ? distance + 7 : distance);
}

/** A bare day begins at midnight here, and not in UTC, as `Date.parse` has it. */
function parseDate(text: string): number {
  if (!/^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?$/.test(text)) return Number.NaN;
  // Date.parse takes the 30th of February for the 2nd of March.
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split("-").map(Number);
  if (new Date(Date.UTC(year, month - 1, day)).getUTCDate() !== day) return Number.NaN;
  if (text.length === 10) return Date.parse(`${text}T00:00`);
  return Date.parse(
    text
      .replace(" ", "T")
      .replace(/ UTC$/, "Z")
      .replace(/ (?=[+-]\d)/, ""),
  );
}

const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

const TIME = /^(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?$/;

const DAY = /^(?:[a-z]+|\d{4}-\d{2}-\d{2})$/i;
