/** How many durations fell into which bucket. */
export interface HistogramSnapshot {
  /** The upper bounds of the buckets in milliseconds, ascending; what is longer is in one bucket more, without a bound. */
  readonly bounds: readonly number[];
  /** How many fell into each bucket; one more than there are bounds. */
  readonly counts: readonly number[];
  /** How many there were. */
  readonly count: number;
  /** The sum of all, in milliseconds. */
  readonly sum: number;
}

/** The upper bounds of the buckets in milliseconds: from a good transfer to a day of backlog. */
export const BOUNDS: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 1_800_000,
  7_200_000, 86_400_000,
];

/** Counts durations in buckets. */
export class Histogram {
  readonly #counts = BOUNDS.map(() => 0).concat(0);
  #count = 0;
  #sum = 0;

  /** Counts a duration (ms), which several may have had. One below 0 counts as 0, and one that is not finite is left out. */
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
