import { median } from "./median.ts";

/** One number measured by a round. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: Unit;
  readonly goal?: Goal;
  /** A note for the reader, mainly why the value is missing (it is NaN then). */
  readonly note?: string;
  /** Its place on a plot: which curve, and where on it. */
  readonly plot?: { readonly curve: Curve; readonly x: number };
  /** The parts of the number, in the same unit. */
  readonly parts?: Readonly<Record<string, number>>;
}

/** A bare number has no unit. */
export type Unit = "" | "x" | "ms" | "us" | "B" | "/s";

/** The figures that grow with the number of delayed messages, or of clients; and one whose parts are stacked. */
export type Curve = "script time" | "lateness" | "stall" | "commands" | "processor time" | "stages";

/** A goal, for the median of all rounds or for each single round. */
export interface Goal {
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly inEveryRound?: boolean;
}

/** A number over all rounds. */
export interface Summary extends Omit<Figure, "value"> {
  readonly values: readonly number[];
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** Undefined if there is no goal, or no measurement. */
  readonly isMet: boolean | undefined;
}

/** Summarizes the figures of all rounds, which have the same order in each. */
export function summarize(rounds: readonly (readonly Figure[])[]): Summary[] {
  const [first = []] = rounds;
  return first.map(({ name, unit, goal, note, plot }, i) => {
    const figures = rounds.map((round) => round[i] as Figure);
    const values = figures.map(({ value }) => value);
    const known = values.filter((value) => !Number.isNaN(value));
    const [min, max] = known.length > 0 ? [Math.min(...known), Math.max(...known)] : [NaN, NaN];
    const parts = medianParts(figures);
    return {
      name,
      unit,
      ...(goal && { goal }),
      ...(note !== undefined && { note }),
      ...(plot && { plot }),
      ...(parts && { parts }),
      values,
      median: median(values),
      min,
      max,
      isMet:
        known.length === 0
          ? undefined
          : goal && (goal.inEveryRound ? values : [median(values)]).every((v) => meets(v, goal)),
    };
  });
}

function meets(value: number, { atMost = Infinity, atLeast = -Infinity }: Goal): boolean {
  return value <= atMost && value >= atLeast;
}

function medianParts(figures: readonly Figure[]): Record<string, number> | undefined {
  const all = figures.map(({ parts }) => parts ?? {});
  const names = new Set(all.flatMap((parts) => Object.keys(parts)));
  if (names.size === 0) return undefined;
  const medians = [...names].map((name) => [name, median(all.map((p) => p[name] ?? 0))] as const);
  return Object.fromEntries(medians.toSorted(([, a], [, b]) => b - a));
}
