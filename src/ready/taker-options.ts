import type { DelaylineError } from "../errors.ts";
import type { Connections } from "../redis/connections.ts";
import type { Troubles } from "../redis/troubles.ts";
import type { SourceOrder } from "./open-sources.ts";

/** The part of the client that a taker uses. */
export interface TakerHost {
  readonly connections: Connections;
  readonly report: (error: DelaylineError) => void;
  readonly troubles: Troubles;
  /** How long give-backs are retried after `close`, in milliseconds. */
  readonly closeTimeout: number;
}

/** How a taker takes. */
export interface TakerOptions {
  /** Defaults to "fixed". */
  readonly order?: SourceOrder | undefined;
  /** The name of the queue in errors. Defaults to the names of the LISTs. */
  readonly name?: string | undefined;
  /** Whether the waiters also wait elsewhere at the same time; see {@link PopRhythm}. Defaults to false. */
  readonly isSparing?: boolean | undefined;
}
