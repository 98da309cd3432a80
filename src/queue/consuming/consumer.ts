import { checkDuration, checkOptions } from "../checks.ts";

/**
 * What hands messages of a queue to the user's code: the handlers of a subscription, or a loop. Messages
 * in such hands have left Redis, so closing waits for them.
 */
export interface Consumer {
  /** How many handlers, or bodies of a loop, run now. */
  readonly running: number;
  /** Resolves when none of them runs, and none will. */
  readonly ended: Promise<unknown>;
  /** Takes nothing more from now on. */
  stop(): void;
}

/** Options of `close`. */
export interface CloseOptions {
  /**
   * How long running handlers, and bodies of `for await` loops, are waited for, in milliseconds.
   *
   * Those that still run are then left alone, and an `error` event ({@link LeftRunningError}) says how
   * many. What they have in hand of a reliable queue goes back, and counts. After the client's `close()` their calls
   * meet a `ClosedError`. Defaults to no limit.
   */
  readonly timeout?: number;
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal. */
export function checkCloseOptions(options: CloseOptions): void {
  checkOptions("close option", options, ["timeout"]);
  if (options.timeout !== undefined) checkDuration("timeout", options.timeout);
}
