import type { WaitOptions } from "../../run/waiters.ts";
import type { Held } from "../group/held.ts";

/** Takes one message of a partition that this process holds. Rejects with a `ClosedError` when it is given up. */
export type ExclusiveTake = (wait: WaitOptions) => Promise<readonly Held[]>;

/** The exclusive consumption of a group: all partitions that this process comes to hold. */
export interface ExclusiveDeliveries {
  /** The error of every other way to take messages. */
  readonly refusal: TypeError;
  /** @throws {TypeError} if this client consumes the group already. */
  check(): void;
  /**
   * Calls `consume` for each partition that this process comes to hold. `consume` must resolve once `take` has rejected
   * and nothing is held. Resolves when `stopping` was aborted and this process holds no partition.
   */
  run(consume: (take: ExclusiveTake) => Promise<void>, stopping: AbortSignal): Promise<void>;
}
