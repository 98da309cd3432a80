import { performance, setTimeout } from "./network.ts";

/**
 * Timeouts of one common length, which share a single timer. So a timeout that is removed in time costs next to
 * nothing.
 *
 * The timer does not keep the process alive.
 */
export class Expiries {
  /** Milliseconds until each entry expires. */
  readonly timeout: number;
  readonly #entries = new Set<Expiry>();
  #timer: NodeJS.Timeout | undefined;

  constructor(timeout: number) {
    this.timeout = timeout;
  }

  /** Calls `onOver` after `timeout`, unless the entry is {@link remove}d first. */
  add(onOver: () => void): Expiry {
    const expiry = { endsAt: performance.now() + this.timeout, onOver };
    this.#entries.add(expiry);
    if (this.#timer === undefined) this.#arm(this.timeout);
    return expiry;
  }

  /** Removes an entry, so that it does not expire. */
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

/** An entry of {@link Expiries}. */
export interface Expiry {
  /** When it expires (`performance.now()`). */
  readonly endsAt: number;
  readonly onOver: () => void;
}
