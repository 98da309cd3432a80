import { onTestFinished } from "vitest";
import type { OfferError } from "../../src/index.ts";
import { eventually } from "../helpers/eventually.ts";

/** Milliseconds that an offer may take here: longer than any failover. */
export const OUTLAST = 60_000;

/**
 * A producer that offers numbers at a steady rate, and the result of each offer. Instants are from `performance.now()`.
 */
export class Offering {
  readonly offeredAt = new Map<number, number>();
  readonly acknowledgedAt = new Map<number, number>();
  readonly rejected = new Map<number, OfferError>();
  #timer: NodeJS.Timeout | undefined;

  /** Offers 0, 1, 2, ... one every `interval` milliseconds, until {@link stop} or the end of the test. */
  protected begin(offer: (n: number) => Promise<unknown>, interval: number): void {
    this.#timer = setInterval(() => {
      const n = this.offeredAt.size;
      this.offeredAt.set(n, performance.now());
      offer(n).then(
        () => this.acknowledgedAt.set(n, performance.now()),
        (error: OfferError) => this.rejected.set(n, error),
      );
    }, interval);
    onTestFinished(() => this.stop());
  }

  /** Stops offering. */
  stop(): void {
    clearInterval(this.#timer);
  }

  /** Stops offering, and resolves when every offer is settled. */
  async settled(): Promise<void> {
    this.stop();
    const settled = () => this.acknowledgedAt.size + this.rejected.size;
    await eventually(() => settled() === this.offeredAt.size, { within: OUTLAST });
  }

  /** Milliseconds from `at` until an offer made after `at` was acknowledged. */
  untilAcknowledged(at: number): number {
    return this.until(at, this.acknowledgedAt);
  }

  /** Milliseconds from `at` until the first instant in `doneAt` of a message offered after `at`. */
  protected until(at: number, doneAt: ReadonlyMap<number, number>): number {
    const instants = [...doneAt].filter(([n]) => (this.offeredAt.get(n) ?? 0) > at);
    return Math.min(...instants.map(([, instant]) => instant)) - at;
  }
}
