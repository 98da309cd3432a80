import type { DelaylineError } from "../../errors.ts";
import type { TransferReply } from "../../lua/delayed/transfer.ts";
import type { PauseWatch } from "../../queue/pause-watch.ts";
import type { Connections } from "../../redis/connections.ts";
import type { Subscriber } from "../../redis/subscriber.ts";
import type { Troubles } from "../../redis/troubles.ts";
import type { ServerClock } from "../../time/server-clock.ts";

/** The part of the client that a transfer task uses. */
export interface TransferOptions {
  readonly connections: Connections;
  readonly subscriber: Subscriber;
  readonly clock: ServerClock;
  readonly pauses: Pick<PauseWatch, "isPaused" | "note">;
  readonly report: (error: DelaylineError) => void;
  readonly troubles: Troubles;
  /** Called with the reply of each transfer. Must not throw. */
  readonly onTransferred?: (reply: TransferReply) => void;
  /**
   * Called when a script has failed. Returns true if it handled the error: try again, report nothing. Must not throw.
   */
  readonly onRefused?: (error: unknown) => boolean;
  /** Of a partition: returns the fact as this process knows it; see {@link Queue.run}. */
  readonly knownFact?: (() => string | undefined) | undefined;
}
