import { past } from "../../../inside.ts";
import type { Point } from "./history.ts";

/** How far back the page looks. */
export const SPANS_BACK = {
  hour: { of: "minutes", count: 60 },
  day: { of: "minutes", count: 1440 },
  quarter: { of: "days", count: 90 },
} as const satisfies Readonly<Record<string, Omit<past.PastRange, "now">>>;

export type SpanBack = keyof typeof SPANS_BACK;

/** For each number its values, the latest last; undefined where it was not read. */
export type Lines = past.PastNumbers["values"];

/** The values of one number, the latest last. */
type Line = readonly (number | undefined)[];

/** How many messages became ready in each minute, and how many dead letters there were more than before. */
export interface Flows {
  readonly readied: Line;
  readonly failed: Line;
}

const MINUTE = 60_000;

/** What this process has read in the minutes of a range, by its last point of each. Of days it knows nothing. */
export function pastOf(
  points: readonly Point[],
  { of, count, now }: past.PastRange,
): (past.PastNumbers & { readonly readied: Line }) | undefined {
  if (of === "days") return undefined;
  const first = Math.floor(now / MINUTE) - count + 1;
  const byMinute = new Map(points.map((point) => [Math.floor(point.at / MINUTE) - first, point]));
  const valuesOf = (field: past.Noted | "readied") =>
    Array.from({ length: count }, (_, minute) => {
      const value = byMinute.get(minute)?.[field];
      const isRate = field === "finished" || field === "readied";
      return value !== undefined && isRate ? value * 60 : value;
    });
  const values = each(valuesOf);
  return { from: first * MINUTE, step: MINUTE, values, readied: valuesOf("readied") };
}

/** The past as Redis has it, and where it does not know, as this process does. */
export function merged(
  kept: past.PastNumbers | undefined,
  live: past.PastNumbers | undefined,
): past.PastNumbers | undefined {
  if (kept === undefined || live === undefined) return kept ?? live;
  const values = each((noted) =>
    kept.values[noted].map((value, i) => value ?? live.values[noted][i]),
  );
  return { ...kept, values };
}

/** Redis keeps greater numbers rounded: by how much they grew is not known. */
const MOST_EXACT = 15;

/**
 * What came in each minute. Of a process's own numbers it is exact, given what it has seen become ready; of those in Redis
 * it follows from them: what became ready has finished, or there is more in the stream.
 */
export function flowsOf({ values }: past.PastNumbers, readied?: Line): Flows {
  const most = readied === undefined ? MOST_EXACT : Infinity;
  const [ready, inFlight] = [growthOf(values.ready, most), growthOf(values.inFlight, most)];
  const came = (finished = NaN, i: number) =>
    countOf(finished + (ready[i] ?? NaN) + (inFlight[i] ?? NaN));
  const letters = growthOf(values.dead, most);
  return {
    readied: readied ?? values.finished.map(came),
    // Without letters none has come, whatever was before.
    failed: values.dead.map((count, i) => (count === 0 ? 0 : countOf(letters[i] ?? NaN))),
  };
}

/** By how much each value is greater than the one before it, if both are at most `most`. */
function growthOf(line: Line, most: number): Line {
  return line.map((value = NaN, i) => {
    const before = line[i - 1] ?? NaN;
    return Math.max(before, value) <= most ? value - before : undefined;
  });
}

/** A number that cannot be less than 0; undefined if it is none. */
function countOf(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : Math.max(0, value);
}

/** The flows that one knows, and where it does not, those that the other does. */
export function mergedFlows(first: Flows, second: Flows | undefined): Flows {
  const merge = (name: keyof Flows) => first[name].map((value, i) => value ?? second?.[name][i]);
  return { readied: merge("readied"), failed: merge("failed") };
}

/**
 * The flows of all queues together: unknown where that of a queue is whose numbers are known, since a sum of the others
 * would be too small.
 */
export function totalFlows(
  all: readonly { readonly values: Lines; readonly flows: Flows }[],
): Flows {
  const total = (name: keyof Flows, counted: past.Noted) =>
    Array.from({ length: all[0]?.flows[name].length ?? 0 }, (_, i) => {
      const known = all.filter(
        ({ values, flows }) => (values[counted][i] ?? flows[name][i]) !== undefined,
      );
      const amounts = known.map(({ flows }) => flows[name][i] ?? NaN);
      const sum = amounts.reduce((one, other) => one + other, 0);
      return known.length === 0 || Number.isNaN(sum) ? undefined : sum;
    });
  return { readied: total("readied", "finished"), failed: total("failed", "dead") };
}

/** A past with at most `most` intervals, each of several: the most of each number, and of what has finished the mean. */
export function folded({ from, step, values }: past.PastNumbers, most: number): past.PastNumbers {
  const size = Math.ceil(values.delayed.length / most);
  const fold = (noted: past.Noted) => foldedLine(values[noted], most, noted === "finished");
  return size === 1 ? { from, step, values } : { from, step: step * size, values: each(fold) };
}

/** A line with at most `most` values, each the mean or the most of several. */
export function foldedLine(line: Line, most: number, isMean: boolean): Line {
  const size = Math.ceil(line.length / most);
  return Array.from({ length: Math.ceil(line.length / size) }, (_, i) => {
    const known = line.slice(i * size, (i + 1) * size).filter((value) => value !== undefined);
    if (known.length === 0) return undefined;
    return isMean
      ? known.reduce((sum, value) => sum + value, 0) / known.length
      : Math.max(0, ...known);
  });
}

/** The sums of what is known of all lines, and for `late` the most. */
export function totalOf(all: readonly Lines[]): Lines {
  return each((noted) => {
    const totals = Array.from(
      { length: all[0]?.[noted].length ?? 0 },
      (): number | undefined => undefined,
    );
    for (const { [noted]: line } of all) {
      for (let i = 0; i < totals.length; i++) {
        const [value, total = 0] = [line[i], totals[i]];
        if (value === undefined) continue;
        totals[i] = noted === "late" ? Math.max(total, value) : total + value;
      }
    }
    return totals;
  });
}

/** Whether the latest intervals are known: a process notes the numbers. */
export function isFresh({ values }: past.PastNumbers): boolean {
  return values.delayed.slice(-LATEST).some((value) => value !== undefined);
}

/** Intervals without a note after which no process seems to note any more. */
const LATEST = 3;

/** The intervals of a past of which anything is known, as points. `finished` is per second. */
export function pointsOf({ from, step, values }: past.PastNumbers): Partial<Point>[] {
  return Array.from({ length: values.delayed.length }, (_, i) => {
    const known = past.NOTED.map((noted) => [noted, values[noted][i]] as const);
    const point = Object.fromEntries(known) as Partial<Point>;
    return known.every(([, value]) => value === undefined)
      ? []
      : { at: from + i * step, ...point, ...perSecond(point.finished, step) };
  }).flat();
}

function perSecond(finished: number | undefined, step: number) {
  return finished === undefined ? {} : { finished: (finished * 1000) / step };
}

function each(valuesOf: (noted: past.Noted) => readonly (number | undefined)[]): Lines {
  return Object.fromEntries(
    past.NOTED.map((noted) => [noted, valuesOf(noted)]),
  ) as unknown as Lines;
}
