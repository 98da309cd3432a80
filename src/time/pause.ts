/** A pause before trying again: it grows by doubling from `least` up to `most` milliseconds. */
export class Pause {
  readonly #least: number;
  readonly #most: number;
  #next: number;
  #waking: (() => void) | undefined;

  constructor(least: number, most: number) {
    this.#least = this.#next = least;
    this.#most = most;
  }

  /** The length of the next pause in milliseconds; the one after that is longer. */
  take(): number {
    const length = this.#next;
    this.#next = Math.min(length * 2, this.#most);
    return length;
  }

  /** Waits for the length of a pause, or until {@link end}. */
  async wait(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timeout = setTimeout(resolve, this.take());
      this.#waking = () => {
        clearTimeout(timeout);
        resolve();
      };
    });
    this.#waking = undefined;
  }

  /** After a success: the next pause is the shortest again. */
  reset(): void {
    this.#next = this.#least;
  }

  /** Ends a wait that is under way. */
  end(): void {
    this.#waking?.();
  }
}
