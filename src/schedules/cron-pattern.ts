/*
 * A cron pattern as it is written. croner says when it comes. This file refuses what croner would read with another
 * meaning than who wrote it: patterns of other schedulers, whose fields or weekdays are counted differently. It also
 * refuses numbers that a field does not have, since croner's own errors about them are hard to read.
 */

/** A pattern that croner can read. */
export interface CronPattern {
  /** Five, six or seven fields. */
  readonly text: string;
  /**
   * Whether it names times of the day, such as `0,30 2,14 * * *`: neither its seconds nor its minutes nor its hours have
   * a `*`. Any other pattern is an interval.
   */
  readonly isFixed: boolean;
}

/**
 * Reads a cron pattern.
 *
 * @throws {RangeError} if it is none, or means something else to another scheduler. The message says what to write.
 */
export function readCron(pattern: string): CronPattern {
  const trimmed = pattern.trim();
  const text = NICKNAMES.get(trimmed.toLowerCase()) ?? trimmed;
  const wayOut = BROUGHT.map((find) => find(text)).find((one) => one !== undefined);
  if (wayOut !== undefined) throw notCron(pattern, wayOut);
  const fields = text.split(/\s+/);
  if (fields.length < 5 || fields.length > 7) throw notCron(pattern, COUNT_OF_FIELDS);
  if (fields.length === 5) fields.unshift("0");
  for (const [i, field] of fields.entries()) {
    for (const part of field.split(",")) {
      const why = mistakeIn(FIELDS[i]!, part, field);
      if (why !== undefined) throw notCron(pattern, why);
    }
  }
  const [days, weekdays] = [fields[3]!, fields[5]!];
  if ((days === "?" || weekdays === "?") && NUMBER.test(weekdays)) {
    throw notCron(pattern, twoMeanings(weekdays));
  }
  return { text, isFixed: fields.slice(0, 3).every((field) => !field.includes("*")) };
}

/** The error about a pattern that is none. */
export function notCron(pattern: string, why: string, options?: ErrorOptions): RangeError {
  const rule = `cron must be a cron pattern, got ${JSON.stringify(pattern)}`;
  return new RangeError(`${rule}: ${why}`, options);
}

interface Field {
  readonly name: string;
  readonly least: number;
  readonly most: number;
}

const FIELDS: readonly Field[] = [
  { name: "second", least: 0, most: 59 },
  { name: "minute", least: 0, most: 59 },
  { name: "hour", least: 0, most: 23 },
  { name: "day of month", least: 1, most: 31 },
  { name: "month", least: 1, most: 12 },
  { name: "weekday", least: 0, most: 7 },
  { name: "year", least: 0, most: 9999 },
];

const COUNT_OF_FIELDS =
  "it must have five fields (minute, hour, day of month, month, weekday), with seconds in front six, and with a year at the end seven";

/** What is wrong with a part of a list; undefined if nothing is, or croner tells it. */
function mistakeIn(field: Field, part: string, whole: string): string | undefined {
  const { name, least, most } = field;
  if (part.includes("?") && (whole !== "?" || !MAY_BE_OPEN.has(name))) {
    return `"?" must stand alone, as day of month or weekday`;
  }
  if (OPEN_STEP.test(part)) return `write ${closed(field, part)} for ${part}`;
  const numbers = part.replace(/[#/].*/, "").match(/\d+/g) ?? [];
  const isWithin = numbers.every((text) => Number(text) >= least && Number(text) <= most);
  if (isWithin && !part.startsWith("-")) return undefined;
  return `${name} must be ${least} to ${most}, got ${part}`;
}

/** Fields in which Quartz and AWS write `?`. */
const MAY_BE_OPEN: ReadonlySet<string> = new Set(["day of month", "weekday"]);

/** Such as `5/15`: from 5 on each 15th. */
const OPEN_STEP = /^\d+\/\d+$/;

/** An open step with the end that croner asks for. */
function closed({ most }: Field, part: string): string {
  return OPEN_STEP.test(part) ? part.replace("/", `-${most}/`) : part;
}

/** A number that is no step, and not the week of `FRI#2`. */
const NUMBER = /(?<![#/\d])\d+/;

const UNIX_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
const QUARTZ_DAYS = [undefined, "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

function twoMeanings(weekdays: string): string {
  const inQuartz = named(weekdays, QUARTZ_DAYS);
  const ofQuartz = inQuartz === undefined ? "" : `${inQuartz} if it is from Quartz or AWS, `;
  return `beside "?" numbers of weekdays have two meanings: write ${ofQuartz}${named(weekdays, UNIX_DAYS)} if it is from Unix or Spring`;
}

/** Weekdays with names for numbers; undefined if one has no name. */
function named(weekdays: string, names: readonly (string | undefined)[]): string | undefined {
  let isKnown = true;
  const all = new RegExp(NUMBER, "g");
  const text = weekdays.replace(all, (number) => {
    const name = names[Number(number)];
    isKnown &&= name !== undefined;
    return name ?? number;
  });
  return isKnown ? text : undefined;
}

/** Forms of other schedulers: each returns what to write instead, or undefined for other texts. */
const BROUGHT: readonly ((text: string) => string | undefined)[] = [
  (text) => {
    const [, inside] = /^cron\((.*)\)$/i.exec(text) ?? [];
    return inside === undefined ? undefined : (wayOutOfAws(inside) ?? "leave cron( ) out");
  },
  wayOutOfAws,
  (text) =>
    /^(@every|every|rate)\b/i.test(text) ? "an interval is the option every, in ms" : undefined,
  (text) => (/^(CRON_)?TZ=/i.test(text) ? "the zone is the option timeZone" : undefined),
  (text) =>
    /(^|\s)H\b/.test(text)
      ? "H is of Jenkins: write a number, and keep schedules apart by the option spread"
      : undefined,
  (text) =>
    text.includes(":")
      ? `write a time of day as minute and hour, such as "30 2 * * *" for 02:30; one single instant is for offerAt`
      : undefined,
];

/** AWS writes six fields, too, but from the minute to the year. One of its days is always `?`. */
function wayOutOfAws(text: string): string | undefined {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== 6) return undefined;
  const [, , days, , weekdays, year = ""] = fields;
  if (days !== "?" && weekdays !== "?" && !/\d{4}/.test(year)) return undefined;
  const written = fields.map((field, i) => {
    const ours = FIELDS[i + 1]!;
    const parts = field.split(",").map((part) => closed(ours, part));
    return ours.name === "weekday" ? (named(parts.join(), QUARTZ_DAYS) ?? field) : parts.join();
  });
  const wayOut = year === "*" ? written.slice(0, 5) : ["0", ...written];
  return `it has the fields of AWS, from the minute to the year: write "${wayOut.join(" ")}"`;
}

const NICKNAMES: ReadonlyMap<string, string> = new Map([
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
  ["@monthly", "0 0 1 * *"],
  ["@weekly", "0 0 * * 0"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@hourly", "0 * * * *"],
]);
