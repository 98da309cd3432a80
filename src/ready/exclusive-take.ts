import type { WaitOptions } from "../queue/consuming/waiters.ts";

/** A message of a partition that this process holds. */
export interface HeldTaken {
  readonly payload: Buffer;
  /** The fence of the lease under which it was taken. */
  readonly fence: number;
  /** Aborted when the lease is over. */
  readonly signal: AbortSignal;
  /** Whether a handler may begin. Otherwise the message has to be put back. */
  readonly isOurs: boolean;
  /** Puts it back to the head of its LIST. */
  putBack(): void;
}

/** Takes from one partition, for its only handler. Rejects with a `ClosedError` when the partition is given up. */
export type TakeHeld = (wait: WaitOptions) => Promise<readonly HeldTaken[]>;

/** How messages are taken exclusively. */
export interface ExclusiveTaking {
  /** @throws {TypeError} if this client takes them already. */
  check(): void;
  /**
   * Calls `consume` for each partition that this process comes to hold, which resolves when the take has rejected and
   * nothing is in hand. Resolves when `stopping` is aborted and nothing is held any more.
   */
  run(consume: (take: TakeHeld) => Promise<void>, stopping: AbortSignal): Promise<void>;
}
