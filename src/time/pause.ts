import { networkTime } from "./runtime.ts";

/** The pause before another attempt: it doubles each time, from `least` up to `most` milliseconds. */
export class Pause {
  readonly #least: number;
  readonly #most: number;
  #next: number;
  #endWait: (() => void) | undefined;

  constructor(least: number, most: number) {
    this.#least = this.#next = least;
    this.#most = most;
  }

  /** Returns the length of the next pause in milliseconds, and doubles the one after it. */
  take(): number {
    const length = this.#next;
    this.#next = Math.min(length * 2, this.#most);
    return length;
  }

  /** Waits for the length of the next pause, or until {@link end}. */
  async wait(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timeout = networkTime.setTimeout(resolve, this.take());
      this.#endWait = () => {
        networkTime.clearTimeout(timeout);
        resolve();
      };
    });
    this.#endWait = undefined;
  }

  /** Makes the next pause the shortest again, after a success. */
  reset(): void {
    this.#next = this.#least;
  }

  /** Ends the current wait. */
  end(): void {
    this.#endWait?.();
  }
}
