/**
 * Runs functions with the same key one after another, within this process.
 *
 * A key for which nothing waits or runs is forgotten, so there may be any number of keys.
 */
import { types } from "node:util";

export class Sequences {
  /** The end of the last function of each key. None rejects. */
  readonly #ends = new Map<string, Promise<void>>();

  /** How many keys have a function that waits or runs. */
  get size(): number {
    return this.#ends.size;
  }

  /**
   * Runs `work` after all functions that were passed before with this key, whether they succeed or fail. Runs it at
   * once if there are none, or without a key. Resolves or rejects as `work` does.
   *
   * If `work` awaits a later call with its own key, it waits for ever.
   */
  async run<T>(key: string | undefined, work: () => Promise<T>): Promise<T> {
    if (key === undefined) return await work();
    const before = this.#ends.get(key);
    let leave: (() => void) | undefined;
    const end = new Promise<void>((resolve) => (leave = resolve));
    this.#ends.set(key, end);
    try {
      await before;
      return await work();
    } finally {
      if (this.#ends.get(key) === end) this.#ends.delete(key);
      leave?.();
    }
  }
}

/** @throws {TypeError} if a user's `orderBy` returned neither a string nor undefined. */
export function sequenceOf(value: unknown): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  // An async function, contrary to its type. Its promise is never awaited, so a rejection would end the process.
  if (types.isPromise(value)) value.catch(() => {});
  throw new TypeError(`orderBy must return a string or undefined, got ${typeof value}`);
}
