import { past } from "../../../inside.ts";
import type { Point } from "./history.ts";

/** How far back the page looks. */
export const SPANS_BACK = {
  hour: { of: "minutes", count: 60 },
  day: { of: "minutes", count: 1440 },
  quarter: { of: "days", count: 90 },
} as const satisfies Readonly<Record<string, Omit<past.PastRange, "now">>>;

export type SpanBack = keyof typeof SPANS_BACK;

/** For each number its values, the latest last; undefined where nobody read it. */
export type Lines = past.PastNumbers["values"];

const MINUTE = 60_000;

/** What this process has read in the minutes of a range, by its last point of each. Of days it knows nothing. */
export function pastOf(
  points: readonly Point[],
  { of, count, now }: past.PastRange,
): past.PastNumbers | undefined {
  if (of === "days") return undefined;
  const first = Math.floor(now / MINUTE) - count + 1;
  const byMinute = new Map(points.map((point) => [Math.floor(point.at / MINUTE) - first, point]));
  const valuesOf = (noted: past.Noted) =>
    Array.from({ length: count }, (_, minute) => {
      const value = byMinute.get(minute)?.[noted];
      return value !== undefined && noted === "finished" ? value * 60 : value;
    });
  return { from: first * MINUTE, step: MINUTE, values: each(valuesOf) };
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

/** A past with at most `most` intervals, each of several: the most of each number, and of what has finished the mean. */
export function folded({ from, step, values }: past.PastNumbers, most: number): past.PastNumbers {
  const size = Math.ceil(values.delayed.length / most);
  if (size === 1) return { from, step, values };
  const fold = (noted: past.Noted) =>
    Array.from({ length: Math.ceil(values[noted].length / size) }, (_, i) => {
      let [count, total, greatest] = [0, 0, 0];
      for (let at = i * size; at < (i + 1) * size; at++) {
        const value = values[noted][at];
        if (value === undefined) continue;
        count++;
        total += value;
        greatest = Math.max(greatest, value);
      }
      if (count === 0) return undefined;
      return noted === "finished" ? total / count : greatest;
    });
  return { from, step: step * size, values: each(fold) };
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

/** Whether the latest intervals are known: somebody notes the numbers. */
export function isFresh({ values }: past.PastNumbers): boolean {
  return values.delayed.slice(-LATEST).some((value) => value !== undefined);
}

/** Intervals without a note after which nobody seems to note any more. */
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
