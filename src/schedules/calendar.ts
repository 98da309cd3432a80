import { isError } from "../values/thrown.ts";
import { checkZone } from "../queue/checks.ts";
import { loading } from "../time/runtime.ts";
import { notCron, readCron } from "./cron-pattern.ts";

/** Says when something recurs: a calendar of your own, an rrule, a cron of another library. */
export interface ScheduleCalendar {
  /** Returns the first instant that is later than `from`; null if there is none. The same each time it is asked. */
  next(from: Date): Date | null;
}

/** Every `every` milliseconds since the epoch, shifted by `phase`. */
export function everyCalendar(every: number, phase = 0): ScheduleCalendar {
  return {
    next: (from) => {
      const passed = Math.floor((from.getTime() - phase) / every);
      return new Date((passed + 1) * every + phase);
    },
  };
}

/**
 * The calendar of a cron pattern in a time zone, by the package croner, which is loaded with the first pattern.
 *
 * A pattern of fixed times counts each of them once a day: one that clocks show twice the first time, and those that
 * clocks skip together, when clocks have been set forward. A pattern such as each hour counts every hour that passes.
 *
 * @throws {TypeError} if croner is not installed.
 * @throws {RangeError} if the pattern is none.
 */
export async function cronCalendar(pattern: string, timeZone: string): Promise<ScheduleCalendar> {
  croner ??= await loading(loadCroner());
  const name = `${timeZone} ${pattern}`;
  let calendar = known.get(name);
  if (calendar === undefined) {
    calendar = newCalendar(croner, pattern, timeZone);
    if (known.size >= KEPT) known.clear();
    known.set(name, calendar);
  }
  return calendar;
}

function newCalendar({ Cron }: Croner, pattern: string, timeZone: string): ScheduleCalendar {
  const { text, isFixed } = readCron(pattern);
  const zone = checkZone("timeZone", timeZone);
  try {
    if (!isFixed) {
      const cron = new Cron(text, { timezone: timeZone, paused: true });
      return { next: (from) => cron.nextRun(from) };
    }
    // In UTC, croner counts local times. It would drop times that a zone skips across midnight.
    const cron = new Cron(text, { utcOffset: 0, paused: true });
    return {
      next: (from) => {
        const local = cron.nextRun(new Date(zone.latestBy(from.getTime())));
        return local === null ? null : new Date(zone.instantOf(local.getTime()));
      },
    };
  } catch (error) {
    const why = isError(error) ? error.message : String(error);
    throw notCron(pattern, why.replace(/^CronPattern: /, ""), { cause: error });
  }
}

/** To read a pattern costs as much as a tick. */
const known = new Map<string, ScheduleCalendar>();
const KEPT = 1000;

/** Kept, since to import it again takes milliseconds where a loader is in use. */
let croner: Croner | undefined;

type Croner = typeof import("croner");

async function loadCroner(): Promise<Croner> {
  try {
    // A bundler lets it be missing only if it is awaited here.
    return await import("croner");
  } catch (error) {
    throw new TypeError("cron needs the package croner: npm install croner", { cause: error });
  }
}
