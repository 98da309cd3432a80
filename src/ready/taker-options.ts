import type { OnConnected } from "../redis/blocking-client.ts";
import type { SourceOrder } from "./open-sources.ts";

/** What may be said of a taker. */
export interface TakerOptions {
  /** Defaults to "fixed". */
  readonly order?: SourceOrder | undefined;
  /** What errors call the queue. Defaults to the names of the LISTs. */
  readonly name?: string | undefined;
  /** Whether who waits does so elsewhere at the same time; see {@link PopRhythm}. Defaults to false. */
  readonly isSparing?: boolean | undefined;
  /**
   * Is called with the id and the name on the server of each connection that was opened, before anything is taken
   * on it. If it rejects, the connection is ended, and that is a failure to take. It has to end in any case: `close`
   * awaits it.
   */
  readonly onConnected?: OnConnected | undefined;
}
