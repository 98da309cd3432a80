import type { WaitOptions } from "../queue/consuming/waiters.ts";

/** A message from a partition that this process holds exclusively. */
export interface HeldTaken {
  readonly payload: Buffer;
  /** The fence of the lease under which it was taken. */
  readonly fence: number;
  /** Aborted when the lease ends. */
  readonly signal: AbortSignal;
  /** Whether the lease still holds, so that a handler may begin. Otherwise the message has to be put back. */
  readonly isOurs: boolean;
  /** Puts the message back to the head of its LIST. */
  putBack(): void;
}

/** Takes from one held partition. Rejects with a `ClosedError` once this process gives the partition up. */
export type TakeHeld = (wait: WaitOptions) => Promise<readonly HeldTaken[]>;

/** Consumes a queue exclusively: each partition is held by one process at a time. */
export interface ExclusiveTaking {
  /** @throws {TypeError} if this client already consumes the queue exclusively. */
  check(): void;
  /**
   * Calls `consume` for each partition that this process comes to hold. `consume` has to resolve once its take has
   * rejected and its last handler has ended. Resolves once `stopping` is aborted and no partition is held.
   */
  run(consume: (take: TakeHeld) => Promise<void>, stopping: AbortSignal): Promise<void>;
}
