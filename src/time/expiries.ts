/**
 * Ends things that have all the same time, oldest first. However many there are, they share one timer, so
 * one that ends by itself costs next to nothing.
 *
 * The timer holds no process: what is waited for does.
 */
export class Expiries {
  /** Milliseconds. */
  readonly timeout: number;
  readonly #entries = new Set<Expiry>();
  #timer: NodeJS.Timeout | undefined;

  constructor(timeout: number) {
    this.timeout = timeout;
  }

  /** Calls `onOver` when the time is over, unless it is {@link remove}d before. */
  add(onOver: () => void): Expiry {
    const expiry = { endsAt: performance.now() + this.timeout, onOver };
    this.#entries.add(expiry);
    if (this.#timer === undefined) this.#arm(this.timeout);
    return expiry;
  }

  remove(expiry: Expiry): void {
    this.#entries.delete(expiry);
  }

  #arm(delay: number): void {
    this.#timer = setTimeout(() => this.#expire(), delay).unref();
  }

  #expire(): void {
    this.#timer = undefined;
    for (const expiry of this.#entries) {
      const remaining = expiry.endsAt - performance.now();
      if (remaining > 0) {
        this.#arm(Math.ceil(remaining));
        return;
      }
      this.#entries.delete(expiry);
      expiry.onOver();
    }
  }
}

/** One of them. */
export interface Expiry {
  /** When its time is over (`performance.now()`). */
  readonly endsAt: number;
  readonly onOver: () => void;
}
