import type { TransferReply } from "../../lua/delayed/transfer.ts";
import type { PauseWatch } from "../../queue/pause-watch.ts";

/** What a transfer task is given besides its queue. */
export interface TransferOptions {
  readonly pauses: Pick<PauseWatch, "isPaused" | "note">;
  /** Called with the reply of each transfer. Must not throw. */
  readonly onTransferred?: (reply: TransferReply) => void;
  /**
   * Called when a script has failed. Returns true if it handled the error: try again, report nothing. Must not throw.
   */
  readonly onRefused?: (error: unknown) => boolean;
  /** Of a partition: returns the fact as this process knows it; see {@link Queue.run}. */
  readonly knownFact?: (() => string | undefined) | undefined;
}
