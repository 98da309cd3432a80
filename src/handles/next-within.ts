import { checkInstant, checkIterable, checkDay, checkOptions, checkZone } from "../queue/checks.ts";
import type { InstantLike } from "../queue/instant.ts";
import { nextOpen } from "../time/daily-window.ts";

/** The window of {@link nextWithin}. */
export interface NextWithinOptions {
  /** The time zone of the days and times, such as `"Europe/Berlin"`. */
  readonly timeZone: string;
  /** When the window opens, such as `"09:00"`. Defaults to `"00:00"`. */
  readonly from?: string;
  /**
   * When the window closes; the window excludes that instant. A time before `from` is on the next day: from `"22:00"`
   * to `"06:00"` is a night that belongs to the day on which it begins. Defaults to `"24:00"`.
   */
  readonly to?: string;
  /** The days of the week on which the window opens. Defaults to all seven. */
  readonly days?: Iterable<Weekday>;
  /** Days on which it does not open, such as `["2026-12-25"]`: 10,000 at most. Defaults to none. */
  readonly except?: Iterable<string>;
}

/** A day of the week. */
export type Weekday = "sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat";

/**
 * Returns the first instant at or after `instant` that lies in a window of local time, such as business hours. An instant in the
 * window is returned unchanged. Pure: asks neither Redis nor the clock.
 *
 * If a window would open or close in an hour that is skipped, it does so when clocks are set forward. If the hour comes twice, it
 * does so in the first one.
 *
 * ```ts
 * const at = nextWithin(Date.now() + delay, { timeZone: "Europe/Berlin", days: ["mon", "tue", "wed", "thu", "fri"], from: "09:00", to: "17:30" });
 * await reminders.offerAt(reminder, at);
 * ```
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value.
 */
export function nextWithin(instant: InstantLike, options: NextWithinOptions): Date {
  const at = checkInstant("instant", instant);
  checkOptions("nextWithin option", options, ["timeZone", "from", "to", "days", "except"]);
  const { timeZone, from = "00:00", to = "24:00", days = WEEKDAYS, except = [] } = options;
  const zone = checkZone("timeZone", timeZone);
  const [opens, closes] = [checkTimeOfDay("from", from), checkTimeOfDay("to", to)];
  if (opens === closes || opens === DAY) {
    throw new RangeError(`from and to must enclose a part of a day, got "${from}" and "${to}"`);
  }
  const weekdays = checkWeekdays(days);
  const exceptions = checkExceptions(except);
  return new Date(nextOpen(at, { zone, from: opens, to: closes, weekdays, except: exceptions }));
}

const WEEKDAYS: readonly Weekday[] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const DAY = 86_400_000;

const MAX_EXCEPTIONS = 10_000;

function checkTimeOfDay(name: string, value: unknown): number {
  const rule = `${name} must be a time of day such as "09:00", up to "24:00"`;
  if (typeof value !== "string") throw new TypeError(`${rule}, got ${typeof value}`);
  const [, hour, minute] = /^(\d\d):([0-5]\d)$/.exec(value) ?? [];
  const time = (Number(hour) * 60 + Number(minute)) * 60_000;
  if (time >= 0 && time <= DAY) return time;
  throw new RangeError(`${rule}, got ${JSON.stringify(value)}`);
}

function checkWeekdays(days: unknown): ReadonlySet<number> {
  checkIterable("days", days);
  const numbers = new Set<number>();
  for (const day of days) {
    const number = WEEKDAYS.indexOf(day as Weekday);
    if (number === -1) {
      throw new RangeError(`days must be of ${WEEKDAYS.join(", ")}, got ${JSON.stringify(day)}`);
    }
    numbers.add(number);
  }
  if (numbers.size === 0) throw new RangeError("days must name a day of the week, got none");
  return numbers;
}

function checkExceptions(except: unknown): ReadonlySet<string> {
  checkIterable("except", except);
  const days = new Set<string>();
  for (const day of except) {
    checkDay("except", day);
    days.add(day);
    if (days.size > MAX_EXCEPTIONS) {
      throw new RangeError(`except must have at most ${MAX_EXCEPTIONS} days, got more`);
    }
  }
  return days;
}
