import { ClosedError, RedisError } from "../../errors.ts";
import type { Work } from "../../redis/troubles.ts";
import { Pause } from "../../time/pause.ts";
import type { Held } from "./held.ts";
import type { Settlements } from "./settlements.ts";

/**
 * Settles deliveries that no user's call awaits: what a handler's outcome decides, what nobody took, and what closing
 * gives back.
 *
 * Each settlement is retried with a growing pause until Redis replies. One that was asked for goes before: a handler
 * that has called `ack` has succeeded, even if the call rejected and the handler failed with that error; see `Held`.
 * Once the client begins to close, retries go on for `closeTimeout` at most. An entry that could not be settled stays
 * in flight, and is reclaimed when the lease ends.
 */
export class PersistentSettlements {
  readonly #settlements: Settlements;
  readonly #maxDeliveries: number;
  readonly #isExclusive: boolean;
  /** Milliseconds. */
  readonly #closeTimeout: number;
  readonly #work: Work;
  /** When {@link stop} was called (`performance.now()`). */
  #stoppedAt = Infinity;
  #isClosed = false;
  /** How many settlements are under way. */
  #count = 0;
  /** Called once the last one has ended. */
  #onNone = () => {};

  constructor(
    settlements: Settlements,
    options: {
      readonly maxDeliveries: number;
      /** Whether this is the only consumer of a partition. */
      readonly isExclusive: boolean;
      readonly closeTimeout: number;
      readonly work: Work;
    },
  ) {
    this.#settlements = settlements;
    this.#maxDeliveries = options.maxDeliveries;
    this.#isExclusive = options.isExclusive;
    this.#closeTimeout = options.closeTimeout;
    this.#work = options.work;
  }

  /**
   * Returns a delivery to its group as if it had not been made. Never rejects; resolves when the delivery is no longer
   * held, or the retries are over.
   *
   * The only consumer of a partition leaves the entry in flight instead. The next holder of the partition begins with
   * it, so no message overtakes it.
   */
  release(held: Held): Promise<void> {
    if (this.#isExclusive && !held.isAsked) return Promise.resolve(held.lose());
    return this.persist(held, () => this.#settlements.giveBack(held));
  }

  /**
   * Takes a delivery away from the user's code, and counts it as a failed attempt: the message returns to its group, or
   * becomes a dead letter if that was its last delivery. A delivery that the user's code never had is only
   * {@link release released}. Never rejects.
   */
  giveUp(held: Held, why: Error): Promise<void> {
    if (!held.isGiven) return this.release(held);
    held.abort(why);
    return this.persist(held, () =>
      held.isLast(this.#maxDeliveries)
        ? this.#settlements.buryUnasked(held, why.message)
        : this.#settlements.giveBack(held, why.message),
    );
  }

  /**
   * Calls `settle` until the delivery is no longer held, or the retries are over. If a settlement was asked for and has
   * failed, that one is tried again instead. Never rejects.
   */
  async persist(held: Held, settle: () => Promise<boolean>): Promise<void> {
    let pause: Pause | undefined;
    const startedAt = performance.now();
    this.#count++;
    while (held.isHeld) {
      try {
        await held.settleAsAsked(settle);
        this.#work.succeeded();
      } catch (error) {
        if (this.#isClosed || error instanceof ClosedError) break;
        if (error instanceof RedisError) this.#work.failed(error);
        if (performance.now() > Math.max(startedAt, this.#stoppedAt) + this.#closeTimeout) break;
        pause ??= new Pause(100, 2000);
        await pause.wait();
      }
    }
    if (--this.#count > 0) return;
    // The last settlement may have ended without a success: after a lost reply, a beat finds the entry gone.
    this.#work.stopped();
    this.#onNone();
  }

  /** The client begins to close: the time for retries starts to run. */
  stop(): void {
    this.#stoppedAt = performance.now();
  }

  /** Ends the retries; resolves when no settlement is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#count > 0) await new Promise<void>((resolve) => (this.#onNone = resolve));
    this.#work.ended();
  }
}
