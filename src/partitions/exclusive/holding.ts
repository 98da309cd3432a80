import { RedisError } from "../../errors.ts";
import type { Work } from "../../redis/troubles.ts";
import { Lease, type Claim } from "./lease.ts";

/** What is done with a partition while this process has the lease. */
export interface Tenure {
  /** Resolves when {@link Tenure.end} was called, or the lease is over, and nothing is in hand any more. */
  readonly done: Promise<unknown>;
  /** Finishes what is in hand, and takes nothing more. */
  end(): void;
  /** Something has changed: the fact, or somebody has released a partition. */
  onChange(): void;
}

/**
 * The endeavour of this process to hold one partition, which it consumes exclusively: it takes the lease as soon as it
 * can, has the partition consumed as long as the lease lasts, releases it, and takes it again if it was lost.
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
  #wake = () => {};

  constructor(
    claim: Claim,
    host: {
      /** Begins to consume. */
      readonly begin: (lease: Lease) => Tenure;
      /** Is called when others may take it. */
      readonly onReleased: () => Promise<void>;
      /** How the attempts to take it get on. */
      readonly takes: Work;
    },
  ) {
    this.#claim = claim;
    this.#begin = host.begin;
    this.#onReleased = host.onReleased;
    this.#takes = host.takes;
    this.done = this.#run();
  }

  /** Finishes what is in hand, and releases the partition. */
  end(): void {
    this.#isEnded = true;
    this.#tenure?.end();
    this.#wake();
  }

  /** See {@link Tenure.onChange}. */
  onChange(): void {
    this.#tenure?.onChange();
    this.#wake();
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

  /** The lease; undefined if another process has it, or Redis did not reply: then some time has passed. */
  async #take(): Promise<Lease | undefined> {
    let wait = RETRY;
    try {
      const lease = await Lease.take(this.#claim);
      this.#takes.succeeded();
      if (typeof lease !== "number") return lease;
      wait = Math.min(Math.max(lease, MIN_WAIT), MAX_WAIT);
    } catch (error) {
      const doing = `cannot take the lease on partition "${this.#claim.part.queue.name}"`;
      this.#takes.failed(new RedisError(doing, error));
    }
    if (!this.#isEnded) await this.#sleep(wait);
    return undefined;
  }

  async #sleep(duration: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timeout = setTimeout(resolve, duration);
      this.#wake = () => {
        clearTimeout(timeout);
        resolve();
      };
    });
    this.#wake = () => {};
  }
}

/** Milliseconds until it is tried again, if Redis did not reply. */
const RETRY = 500;

/** Milliseconds until it is tried again, at least. */
const MIN_WAIT = 10;

/** The same at most: it may be released without a word. */
const MAX_WAIT = 500;
