import type { Awaiter } from "../../run/awaiters.ts";
import { checkDuration, checkOptions } from "../checks.ts";

/**
 * Passes messages of a queue to the user's code: a subscription with its handlers, or a `for await` loop. Closing waits
 * for that code, since a plain queue's messages have left Redis.
 */
export interface Consumer {
  /** How many handlers, or bodies of a loop, run now. */
  readonly running: number;
  /** Resolves once none of them runs, and none will start. */
  readonly ended: Promise<unknown>;
  /** Takes nothing more from now on. */
  stop(): void;
  /** Whether the user's code that runs now is one of these functions. */
  isAmong(callers: readonly Awaiter[]): boolean;
}

/** Options of `close`, `closeQueue` and `closeSubscriptions`. */
export interface CloseOptions {
  /**
   * How long to wait for running handlers and bodies of `for await` loops, in milliseconds.
   *
   * Handlers that still run after that are left alone, and an `error` event ({@link LeftRunningError}) says how many.
   * In a reliable queue their messages are given back, and the delivery counts. After the client's `close()`, their
   * calls reject with a `ClosedError`. Defaults to no limit.
   */
  readonly handlerTimeout?: number;
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal. */
export function checkCloseOptions(options: CloseOptions): void {
  checkOptions("close option", options, ["handlerTimeout"]);
  if (options.handlerTimeout !== undefined) checkDuration("handlerTimeout", options.handlerTimeout);
}
