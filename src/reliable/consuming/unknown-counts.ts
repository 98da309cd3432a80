/**
 * How many messages came that no route takes, by name.
 *
 * Keys come from outside, and may hold anything. So there are up to 1,000 names; the others are counted together,
 * as `"other"`, and so is a name that is longer than a legal key.
 */
export class UnknownCounts {
  readonly #counts = new Map<string, number>();

  /** The counts so far. Changes as more come. */
  get entries(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** Counts one message. */
  count(name: string): void {
    const isCounted =
      this.#counts.has(name) || (this.#counts.size < MAX_NAMES && name.length <= MAX_NAME_LENGTH);
    const counted = isCounted ? name : "other";
    this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + 1);
  }
}

/** Enough for every business of an application; some hundred kilobytes at most. */
const MAX_NAMES = 1_000;

/** That of the longest legal business key. */
const MAX_NAME_LENGTH = 200;
