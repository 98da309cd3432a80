/** A message of the storm. */
export interface StormOrder {
  readonly key: string;
  /** Counts the messages of the key in the order of their offers. */
  readonly number: number;
  /** Milliseconds that its handler takes. */
  readonly duration: number;
  /** How many attempts fail. At {@link FATAL}, all do until the storm is over. */
  readonly fails: number;
  /** When it is offered (epoch ms). */
  readonly offered: number;
}

/** `fails` of a message whose attempts all fail. */
export const FATAL = 99;

/** A line of the ledger. `at` is the time on the ledger's server, all others are this machine's clock (epoch ms). */
export interface StormNote {
  readonly at: number;
  readonly by: string;
  /**
   * - `start`: a handler has begun.
   * - `done`, `fail`: it is about to return, or to throw.
   * - `settled`: the library has recorded the failure.
   * - `stall`: the process stood still from `from` to `entered`.
   */
  readonly what: "start" | "done" | "fail" | "settled" | "stall";
  readonly key: string;
  readonly number: number;
  readonly attempt: number;
  readonly fence: number;
  /** When the message was offered. */
  readonly offered: number;
  /** When the handler began. */
  readonly entered: number;
  /** When the delivery's signal was aborted; 0 if it was not. */
  readonly aborted: number;
  readonly from: number;
}

/** Where the workers of a queue write. */
export function stormKeys(queue: string) {
  return { log: `${queue}:log`, done: `${queue}:done`, calm: `${queue}:calm` };
}
