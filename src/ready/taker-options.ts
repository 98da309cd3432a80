import type { Server } from "../redis/server.ts";
import type { SourceOrder } from "./open-sources.ts";

/** What a taker uses of the server that its LISTs are on. */
export type TakerHost = Pick<Server, "connections" | "report" | "troubles" | "closeTimeout">;

/** How a taker takes. */
export interface TakerOptions {
  /** Defaults to "fixed". */
  readonly order?: SourceOrder | undefined;
  /** The name of the queue in errors. Defaults to the names of the LISTs. */
  readonly name?: string | undefined;
  /** Whether the waiters also wait elsewhere at the same time; see {@link PopRhythm}. Defaults to false. */
  readonly isSparing?: boolean | undefined;
}
