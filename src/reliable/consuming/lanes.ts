/**
 * Order within a process: works with the same key run one after another.
 *
 * A key that has nothing left to do is forgotten, so any number of keys may pass through.
 */
export class Lanes {
  /** For each key, the end of what was called last. It never rejects. */
  readonly #ends = new Map<string, Promise<void>>();

  /** How many keys have work that waits or runs. */
  get size(): number {
    return this.#ends.size;
  }

  /**
   * Runs `work` when all works that were called before it with this key have ended, well or badly; at once if
   * there are none, or without a key. Resolves or rejects as the work does.
   *
   * A work that waits for another one of its own key waits for ever.
   */
  async run<T>(key: string | undefined, work: () => Promise<T>): Promise<T> {
    if (key === undefined) return work();
    const result = (this.#ends.get(key) ?? Promise.resolve()).then(work);
    const leave = () => {
      if (this.#ends.get(key) === end) this.#ends.delete(key);
    };
    const end = result.then(leave, leave);
    this.#ends.set(key, end);
    return result;
  }
}
