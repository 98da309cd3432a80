import { RedisError } from "../../errors.ts";
import { heldFact } from "../../lua/guarded.ts";
import type { Work } from "../../redis/troubles.ts";
import { sleepForPresence } from "../../time/sleep.ts";
import { Lease, type Claim } from "./lease.ts";

/** The consumption of a partition during one lease. */
export interface Tenure {
  /** Resolves after {@link Tenure.end} or the end of the lease, once no handler holds a message. */
  readonly done: Promise<unknown>;
  /** Takes no more messages; the running handler may finish. */
  end(): void;
}

/**
 * Holds one partition for this process, which consumes it exclusively: takes the lease as soon as it is free, consumes
 * the partition while the lease lasts, releases it, and takes it again if it was lost.
 */
export class Holding {
  /** Resolves when the partition is released, after {@link end}. */
  readonly done: Promise<void>;
  readonly #claim: Claim;
  readonly #begin: (lease: Lease) => Tenure;
  readonly #onReleased: () => Promise<void>;
  readonly #takes: Work;
  #tenure: Tenure | undefined;
  #isEnded = false;
  /** Ends the current pause. */
  #waking = new AbortController();

  constructor(
    claim: Claim,
    host: {
      /** Starts to consume. */
      readonly begin: (lease: Lease) => Tenure;
      /** Called once other processes may take the partition. */
      readonly onReleased: () => Promise<void>;
      /** Health of the attempts to take the lease. */
      readonly takes: Work;
    },
  ) {
    this.#claim = claim;
    this.#begin = host.begin;
    this.#onReleased = host.onReleased;
    this.#takes = host.takes;
    this.done = this.#run();
  }

  /** Lets the running handler finish, and releases the partition. */
  end(): void {
    this.#isEnded = true;
    this.#tenure?.end();
    this.#waking.abort();
  }

  /** Tries again at once to take the lease: the members have changed, or a partition was released. */
  wake(): void {
    this.#waking.abort();
  }

  async #run(): Promise<void> {
    while (!this.#isEnded) {
      const lease = await this.#take();
      if (lease === undefined) continue;
      if (!this.#isEnded) {
        this.#tenure = this.#begin(lease);
        await this.#tenure.done;
        this.#tenure = undefined;
      }
      await lease.release();
      await this.#onReleased();
    }
  }

  /** Takes the lease. If another process has it or Redis does not reply, pauses and returns undefined. */
  async #take(): Promise<Lease | undefined> {
    let wait = RETRY;
    try {
      const lease = await Lease.take(this.#claim);
      this.#takes.succeeded();
      if (typeof lease !== "number") return lease;
      wait = Math.min(Math.max(lease, MIN_WAIT), MAX_WAIT);
    } catch (error) {
      if (heldFact(error) === undefined) {
        const doing = `cannot take the lease on partition "${this.#claim.part.queue.name}"`;
        this.#takes.failed(new RedisError(doing, error));
      } else {
        // The number of partitions has changed, or is changing. This process knows that now.
        wait = MIN_WAIT;
      }
    }
    if (!this.#isEnded) {
      this.#waking = new AbortController();
      await sleepForPresence(wait, this.#waking.signal);
    }
    return undefined;
  }
}

/** Milliseconds until the next attempt if Redis did not reply. */
const RETRY = 500;

/** Milliseconds until the next attempt, at least. */
const MIN_WAIT = 10;

/** Milliseconds until the next attempt, at most: the notice of a release may be lost. */
const MAX_WAIT = 500;
