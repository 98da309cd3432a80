/*
 * Local times, by the runtime's own time zone data (Intl). A local time is a number here: the epoch milliseconds at which
 * a clock in UTC shows it. So local times are compared, and added to, without a calendar of our own.
 */

const DAY = 86_400_000;

/** A time zone of the IANA database. */
export class Zone {
  readonly #format: Intl.DateTimeFormat;

  private constructor(name: string) {
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  /** The zone of this name; undefined if the runtime does not know it. */
  static named(name: string): Zone | undefined {
    let zone = known.get(name);
    if (zone !== undefined) return zone;
    try {
      zone = new Zone(name);
    } catch {
      return undefined;
    }
    known.set(name, zone);
    return zone;
  }

  /** What clocks show at an instant (epoch ms). */
  localAt(instant: number): number {
    const shown: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of this.#format.formatToParts(instant)) shown[type] = Number(value);
    const { year = 0, month = 1, day, hour, minute, second } = shown;
    return Date.UTC(year, month - 1, day, hour, minute, second) + (instant - secondOf(instant));
  }

  /**
   * The instant at which clocks show a local time.
   *
   * Of two, where clocks are set back, the first one. If they never show it, since they are set forward across it, the
   * instant at which that happens.
   */
  instantOf(local: number): number {
    // No two changes of a zone are that close to each other.
    const before = this.#offsetAt(local - DAY);
    const after = this.#offsetAt(local + DAY);
    // Set back, the greater offset is the one before, and its instant the earlier one.
    for (const offset of [before, after])
      if (this.#offsetAt(local - offset) === offset) return local - offset;
    return this.#changeWithin(local - after, local - before);
  }

  /** The latest local time that clocks have shown by an instant: ahead of what they show where they were set back. */
  latestBy(instant: number): number {
    const local = this.localAt(instant);
    const first = this.instantOf(local);
    if (first === instant) return local;
    return this.localAt(this.#changeWithin(first, instant) - 1);
  }

  /** The first instant after `early` with the offset of `late`. */
  #changeWithin(early: number, late: number): number {
    const offset = this.#offsetAt(late);
    while (late - early > 1) {
      const middle = Math.floor((early + late) / 2);
      if (this.#offsetAt(middle) === offset) late = middle;
      else early = middle;
    }
    return late;
  }

  #offsetAt(instant: number): number {
    return this.localAt(instant) - instant;
  }
}

/** The local time of a text such as `2026-12-24T09:00`, also with seconds; undefined if it is none. */
export function localIn(text: string): number | undefined {
  if (!LOCAL.test(text)) return undefined;
  const local = Date.parse(`${text}Z`);
  // Date.parse reads 30 February as a day of March.
  return Number.isNaN(local) || dayOf(local) !== text.slice(0, 10) ? undefined : local;
}

/** The day of a local time, such as `2026-12-24`. */
export function dayOf(local: number): string {
  return new Date(local).toISOString().slice(0, 10);
}

const LOCAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/;

const known = new Map<string, Zone>();

function secondOf(instant: number): number {
  return Math.floor(instant / 1000) * 1000;
}
