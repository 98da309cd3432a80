// @ts-check
import { formatCount, formatDistance, formatDuration, formatRoughDistance } from "./words.js";

const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Shown instead of unknown values. */
export const UNKNOWN = "–";

/** Whether a value is known: the server omits unknown values or sends them as null. */
export function isKnown(value) {
  return value !== null && value !== undefined;
}

/** `12,345`. */
export function count(number) {
  return isKnown(number) ? formatCount(number) : UNKNOWN;
}

/** `12.3K`, for the axes of plots. */
export function short(number) {
  return SHORT.format(number);
}

/** `1 message`, `12 messages`. */
export function many(number, noun, plural = `${noun}s`) {
  return isKnown(number) ? formatCount(number, noun, plural) : `${UNKNOWN} ${plural}`;
}

/** A duration in its two largest units: `3 d 4 h`, `2 min 5 s`, `1.2 s`, `40 ms`. */
export function duration(milliseconds) {
  return isKnown(milliseconds) ? formatDuration(Math.max(0, milliseconds)) : UNKNOWN;
}

/** An instant relative to now: `in 5 min`, `2 h ago`, `now`. */
export const relative = formatDistance;

/** The same to the minute, beside a clock that shows minutes: `in 6 min`. */
export const about = formatRoughDistance;

const pad = (number, digits = 2) => String(number).padStart(digits, "0");

/** `2026-03-01`, in the browser's time zone. */
export function day(instant) {
  const date = new Date(instant);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

/** `14:05`, in the browser's time zone. */
export function minute(instant) {
  const date = new Date(instant);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

/** `14:05:09`, in the browser's time zone. */
export function second(instant) {
  return `${minute(instant)}:${pad(new Date(instant).getSeconds())}`;
}

/** `2026-03-01 14:05:09`, in the browser's time zone. */
export function instantText(instant) {
  return isDate(instant) ? `${day(instant)} ${second(instant)}` : UNKNOWN;
}

/** What a clock shows, `write` says how, and the day before it unless that is the day of `now`: `14:05`, `2026-03-01 14:05`. */
export function clock(instant, now, write = minute) {
  if (!isDate(instant)) return UNKNOWN;
  return day(instant) === day(now) ? write(instant) : `${day(instant)} ${write(instant)}`;
}

/** ISO 8601 in UTC, for `<time>`; undefined if a Date cannot hold the instant. */
export function isoText(instant) {
  return isDate(instant) ? new Date(instant).toISOString() : undefined;
}

/** `2026-03-01`, in UTC; undefined if a Date cannot hold the instant. */
export function utcDay(instant) {
  return isoText(instant)?.slice(0, 10);
}

/** `512 B`, `1.5 kB`, `2 MB`. */
export function size(bytes) {
  if (!isKnown(bytes)) return UNKNOWN;
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 100) / 10} kB`;
  return `${Math.round(bytes / 100_000) / 10} MB`;
}

// Other programs may have written a deadline that a Date cannot hold.
function isDate(instant) {
  return Number.isFinite(instant) && Math.abs(instant) <= 8.64e15;
}
