// @ts-check
import { day } from "./format.js";

const HOUR = 3_600_000;

/** The beginning of today in the browser's time zone (epoch ms): where the month begins. */
export function startOfToday(now) {
  const date = new Date(now);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}

/**
 * The hours of a month as days of the browser's time zone: `{ day, at, hours }`, where `hours` are `{ index, hour, at,
 * count }`. A day on which the clocks change has 23 or 25 hours.
 */
export function daysOf({ from, totals }) {
  const days = [];
  totals.forEach((count, index) => {
    const at = from + index * HOUR;
    const name = day(at);
    if (days.at(-1)?.day !== name) days.push({ day: name, at, hours: [] });
    days.at(-1).hours.push({ index, at, hour: new Date(at).getHours(), count });
  });
  return days;
}

/** How many shades there are above "none". */
const SHADES = 5;

/** A shade from 0, for none, to 5, for the most. The square root keeps a peak from making all other hours alike. */
export function shadeOf(count, most) {
  return Math.ceil(SHADES * Math.sqrt(count / Math.max(most, 1)));
}
