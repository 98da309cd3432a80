import { dayOf, type Zone } from "./zone.ts";

const DAY = 86_400_000;

/** More than the weeks in a row on whose open day clocks are set forward across the window. */
const WEEKS_SKIPPED = 4;

/** A span of each local day, or of some days. */
export interface DailyWindow {
  readonly zone: Zone;
  /** When it opens and closes, in milliseconds since local midnight. A close before the opening is on the next day. */
  readonly from: number;
  readonly to: number;
  /** Days of the week on which it opens, 0 for Sunday. */
  readonly weekdays: ReadonlySet<number>;
  /** Days on which it does not open, such as `2026-12-25`. */
  readonly except: ReadonlySet<string>;
}

/** The first instant at or after `instant` (epoch ms) at which the window is open. */
export function nextOpen(instant: number, window: DailyWindow): number {
  const { zone, from, to, weekdays, except } = window;
  const today = Math.floor(zone.localAt(instant) / DAY) * DAY;
  // Yesterday's window may still be open. Each week has an open day, unless that is an exception, or skips the window.
  const last = today + 7 * (except.size + WEEKS_SKIPPED) * DAY;
  for (let day = today - DAY; day <= last; day += DAY) {
    if (!weekdays.has(new Date(day).getUTCDay()) || except.has(dayOf(day))) continue;
    const opens = zone.instantOf(day + from);
    const closes = zone.instantOf(day + to + (to <= from ? DAY : 0));
    // Where clocks are set forward across the whole window, it does not open that day.
    if (closes > instant && closes > opens) return Math.max(instant, opens);
  }
  throw new Error("no window opened, though some day of the week has one");
}
