/**
 * Counts messages that no route takes, by name.
 *
 * Keys are foreign input and may hold anything. So it keeps 1,000 names at most. All others are counted together as
 * `"other"`, and so are names longer than a legal key.
 */
export class UnknownCounts {
  readonly #counts = new Map<string, number>();

  /** The counts so far, as a live view. */
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

/** Enough for all kinds of messages of an application; a few hundred kilobytes at most. */
const MAX_NAMES = 1_000;

/** The length of the longest legal business key. */
const MAX_NAME_LENGTH = 200;
