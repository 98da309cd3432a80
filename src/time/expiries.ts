import { networkTime } from "./runtime.ts";

/**
 * Timeouts of one common length, which share a single timer. So a timeout that is removed in time costs next to
 * nothing.
 *
 * What is waited for may be on its way when the time is over: then the timeout is put off, as long as that gets on, but
 * not beyond {@link MOST} times its length.
 *
 * The timer does not keep the process alive.
 */
export class Expiries {
  /** Milliseconds until each entry expires. */
  readonly timeout: number;
  readonly #entries = new Set<Expiry>();
  /** Those that are put off. */
  readonly #late = new Set<Expiry>();
  #timer: NodeJS.Timeout | undefined;
  #lateTimer: NodeJS.Timeout | undefined;

  constructor(timeout: number) {
    this.timeout = timeout;
  }

  /**
   * Calls `onOver` after `timeout`, unless the entry is {@link remove}d first.
   *
   * @param isOnItsWay tells whether what is waited for gets on, when the time is over and from then on each second.
   */
  add(onOver: () => void, isOnItsWay: () => boolean = () => false): Expiry {
    const expiry = { endsAt: networkTime.now() + this.timeout, onOver, isOnItsWay };
    this.#entries.add(expiry);
    if (this.#timer === undefined) this.#arm(this.timeout);
    return expiry;
  }

  /** Removes an entry, so that it does not expire. */
  remove(expiry: Expiry): void {
    this.#entries.delete(expiry);
    this.#late.delete(expiry);
  }

  #arm(delay: number): void {
    this.#timer = networkTime.setTimeout(() => this.#expire(), delay).unref();
  }

  #expire(): void {
    this.#timer = undefined;
    for (const expiry of this.#entries) {
      const remaining = expiry.endsAt - networkTime.now();
      if (remaining > 0) {
        this.#arm(Math.ceil(remaining));
        return;
      }
      this.#entries.delete(expiry);
      if (expiry.isOnItsWay()) this.#putOff(expiry);
      else expiry.onOver();
    }
  }

  #putOff(expiry: Expiry): void {
    this.#late.add(expiry);
    if (this.#lateTimer !== undefined) return;
    this.#lateTimer = networkTime
      .setTimeout(() => this.#look(), Math.min(this.timeout, LOOK))
      .unref();
  }

  /** Looks again at those that are put off. */
  #look(): void {
    this.#lateTimer = undefined;
    const late = [...this.#late];
    this.#late.clear();
    for (const expiry of late) {
      const isHopeful = networkTime.now() < expiry.endsAt + (MOST - 1) * this.timeout;
      if (isHopeful && expiry.isOnItsWay()) this.#putOff(expiry);
      else expiry.onOver();
    }
  }
}

/** An entry of {@link Expiries}. */
export interface Expiry {
  /** When it expires, unless it is put off (`networkTime.now()`). */
  readonly endsAt: number;
  readonly onOver: () => void;
  readonly isOnItsWay: () => boolean;
}

/** Milliseconds between two looks at what is on its way. */
const LOOK = 1000;

/** How many times its length a timeout may last. */
const MOST = 10;
