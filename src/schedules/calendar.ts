import { loading } from "../time/runtime.ts";

/** Says when something recurs: a calendar of your own, an rrule, a cron of another library. */
export interface Calendar {
  /** Returns the first instant that is later than `from`; null if there is none. The same each time it is asked. */
  next(from: Date): Date | null;
}

/** Every `every` milliseconds since the epoch, shifted by `phase`. */
export function everyCalendar(every: number, phase = 0): Calendar {
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
 * A time that a day skips comes when clocks have been set forward. A fixed time that comes twice counts once, the first
 * time; a pattern such as each hour counts every hour that passes.
 *
 * @throws {TypeError} if croner is not installed.
 * @throws {RangeError} if the pattern is none.
 */
export async function cronCalendar(pattern: string, timeZone: string): Promise<Calendar> {
  croner ??= await loading(loadCroner());
  const name = `${timeZone} ${pattern}`;
  let calendar = known.get(name);
  if (calendar === undefined) {
    try {
      const cron = new croner.Cron(pattern, { timezone: timeZone, paused: true });
      calendar = { next: (from) => cron.nextRun(from) };
    } catch (error) {
      const why = error instanceof Error ? `: ${error.message.replace(/^CronPattern: /, "")}` : "";
      throw new RangeError(`cron must be a cron pattern, got ${JSON.stringify(pattern)}${why}`, {
        cause: error,
      });
    }
    if (known.size >= KEPT) known.clear();
    known.set(name, calendar);
  }
  return calendar;
}

/** To read a pattern costs as much as a tick. */
const known = new Map<string, Calendar>();
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
