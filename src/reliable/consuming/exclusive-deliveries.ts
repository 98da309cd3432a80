import type { WaitOptions } from "../../queue/consuming/waiters.ts";
import type { GroupFace } from "../group/group.ts";
import type { Held } from "../group/held.ts";

/** The messages of one partition that this process holds, for its only handler. */
export interface ExclusiveSource {
  /** Settles the messages. */
  readonly group: GroupFace;
  /** Whether a handler may begin: false once the partition's lease is lost. */
  readonly isOurs: boolean;
  /** Takes one message. Rejects with a `ClosedError` when the partition is given up. */
  take(wait: WaitOptions): Promise<readonly Held[]>;
}

/** The exclusive consumption of a group: all partitions that this process comes to hold. */
export interface ExclusiveDeliveries {
  /** The error of every other way to take messages. */
  readonly refusal: TypeError;
  /** @throws {TypeError} if this client consumes the group already. */
  check(): void;
  /**
   * Calls `consume` for each partition that this process comes to hold. `consume` must resolve once a take has rejected
   * and nothing is held. Resolves when `stopping` was aborted and this process holds no partition.
   */
  run(consume: (source: ExclusiveSource) => Promise<void>, stopping: AbortSignal): Promise<void>;
}
