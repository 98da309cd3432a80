/**
 * The units in which a duration is printed, as their shortest name and their length in milliseconds, longest first. Weeks
 * are read, but not printed: days are easier to compare.
 */
const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

/**
 * Reads a duration such as `500ms`, `1h 30m`, `2 min`, `3 days` or `2 weeks`: parts of a number and a unit each. Returns
 * milliseconds; undefined if the text is not a duration.
 */
export function durationIn(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  let sum = 0;
  for (const [, count, unit = ""] of text.matchAll(PART)) {
    sum += Number(count) * (LENGTHS.get(unit.toLowerCase()) ?? 0);
  }
  return sum;
}

const READ = [["w", 7 * 86_400_000], ...UNITS] as const;

const WORDS: Readonly<Record<(typeof READ)[number][0], readonly string[]>> = {
  w: ["w", "week", "weeks"],
  d: ["d", "day", "days"],
  h: ["h", "hour", "hours"],
  m: ["m", "min", "minute", "minutes"],
  s: ["s", "sec", "second", "seconds"],
  ms: ["ms", "millisecond", "milliseconds"],
};

const LENGTHS = new Map(
  READ.flatMap(([unit, length]) => WORDS[unit].map((word) => [word, length])),
);

const UNIT = [...LENGTHS.keys()].toSorted((a, b) => b.length - a.length).join("|");
const PART = new RegExp(String.raw`(\d+(?:\.\d+)?)\s*(${UNIT})\s*`, "gi");
const DURATION = new RegExp(`^(?:${PART.source})+$`, "i");
