import { checkFunction, checkOptions, checkSignal, checkWhole, checkDuration } from "../checks.ts";
import type { CallOptions } from "../call.ts";
import type { OnHandlerError } from "./handler.ts";

/** Options of `takeMany`. */
export interface TakeManyOptions extends CallOptions {
  /**
   * The largest number of messages to take, 1 to 10,000. If the process dies, all of them are lost; those of a reliable
   * queue are delivered again.
   */
  readonly limit: number;
  /**
   * How long to wait for the first message, in milliseconds; 0 does not wait. For no limit leave it out: `Infinity` is
   * refused. Defaults to no limit.
   */
  readonly timeout?: number;
}

/** Options of `subscribe`, which a reliable queue extends. `T` is what the handler gets. */
export interface SubscribeOptions<T = unknown> {
  /** How many handlers may run at once: 1 to 10,000. Each has one message, or one batch. Defaults to 1. */
  readonly concurrency?: number;
  /**
   * Called with what a handler threw and with what it got. A plain queue's message has left Redis: this is the last chance
   * to keep it, or to offer it again. A reliable queue's message has been settled.
   *
   * It may be async, and counts as part of the handler: the next message follows when it has finished, and `close()`
   * waits for it. What it throws itself is reported by an `error` event. Defaults to reporting each failure by an
   * `error` event, without the payload.
   */
  readonly onError?: OnHandlerError<T>;
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal. */
export function checkTakeMany(options: TakeManyOptions): TakeManyOptions {
  checkOptions("takeMany option", options, ["limit", "timeout", "signal"]);
  const { limit, timeout, signal } = options;
  checkSignal(signal);
  checkWhole("limit", limit, 1, MAX_AT_ONCE);
  if (timeout !== undefined) checkDuration("timeout", timeout, { endless: "leave it out" });
  return options;
}

/**
 * Checks the options of a subscription of any kind, and adds the default. `more` are the names that its kind takes besides.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal.
 */
export function checkSubscribe<Options extends Pick<SubscribeOptions, "concurrency">>(
  options: Options & { readonly onError?: unknown },
  more: readonly string[] = [],
): Options & { readonly concurrency: number } {
  checkOptions("subscribe option", options, ["concurrency", "onError", ...more]);
  const { concurrency = 1, onError } = options;
  checkWhole("concurrency", concurrency, 1, MAX_AT_ONCE);
  if (onError !== undefined) checkFunction("onError", onError);
  return { ...options, concurrency };
}

/**
 * Checks the options of a subscription that consumes exclusively.
 *
 * @throws {TypeError} if they set a concurrency: there is one handler for each partition that the process holds.
 */
export function checkExclusiveSubscribe(
  queue: string,
  options: { readonly concurrency?: number },
): void {
  if (options.concurrency === undefined) return;
  throw new TypeError(
    `concurrency must be left out, since queue "${queue}" is exclusive; got ${options.concurrency}`,
  );
}

/** The largest number of messages that one call takes, which limits what a single pop costs Redis. */
export const MAX_AT_ONCE = 10_000;
