/** A distribution of durations over buckets. */
// An alias, not an interface: users cannot name it, so their declarations write it out.
export type HistogramSnapshot = {
  /** The inclusive upper bounds of the buckets in milliseconds, ascending. One more bucket holds what is longer. */
  readonly bounds: readonly number[];
  /** How many durations each bucket holds; one element more than `bounds`. */
  readonly counts: readonly number[];
  /** How many durations there were. */
  readonly count: number;
  /** The sum of all durations, in milliseconds. */
  readonly sum: number;
};

/** The upper bounds of the buckets in milliseconds: from a punctual transfer to a day of backlog. */
export const BOUNDS: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 1_800_000,
  7_200_000, 86_400_000,
];

/** Counts durations in buckets. */
export class Histogram {
  readonly #counts = BOUNDS.map(() => 0).concat(0);
  #count = 0;
  #sum = 0;

  /** Counts a duration (ms) `count` times. A negative one counts as 0; one that is not finite is ignored. */
  record(duration: number, count = 1): void {
    if (!Number.isFinite(duration)) return;
    const value = Math.max(0, duration);
    let bucket = 0;
    while (bucket < BOUNDS.length && value > (BOUNDS[bucket] as number)) bucket++;
    this.#counts[bucket] = (this.#counts[bucket] as number) + count;
    this.#count += count;
    this.#sum += value * count;
  }

  snapshot(): HistogramSnapshot {
    return {
      bounds: BOUNDS,
      counts: [...this.#counts],
      count: this.#count,
      sum: this.#sum,
    };
  }
}
