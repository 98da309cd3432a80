import type { WaitOptions } from "../../queue/consuming/waiters.ts";
import type { GroupFace } from "../group/group.ts";
import type { Held } from "../group/held.ts";

/** The messages of a partition that this process holds, for its only handler. */
export interface ExclusiveSource {
  /** Settles them. */
  readonly group: GroupFace;
  /** Whether a handler may begin. */
  readonly isOurs: boolean;
  /** Takes one. Rejects with a `ClosedError` when the partition is given up. */
  take(wait: WaitOptions): Promise<readonly Held[]>;
}

/** How messages of a group are taken exclusively. */
export interface ExclusiveDeliveries {
  /** Said to whoever wants messages in another way. */
  readonly refusal: TypeError;
  /** @throws {TypeError} if this client takes them already. */
  check(): void;
  /**
   * Calls `consume` for each partition that this process comes to hold, which resolves when the take has rejected and
   * nothing is in hand. Resolves when `stopping` is aborted and nothing is held any more.
   */
  run(consume: (source: ExclusiveSource) => Promise<void>, stopping: AbortSignal): Promise<void>;
}
