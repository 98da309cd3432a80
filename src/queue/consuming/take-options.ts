import { checkFunction, checkOptions, checkSignal, checkWhole, checkDuration } from "../checks.ts";
import type { CallOptions } from "../call.ts";
import type { OnHandlerError } from "./handler.ts";

/** Options of `takeMany`. */
export interface TakeManyOptions extends CallOptions {
  /**
   * The largest number of messages to take, 1 to 10,000. If the process dies, all of them are lost; in a reliable queue
   * they are delivered again.
   */
  readonly limit: number;
  /**
   * How long to wait for the first message, in milliseconds; 0 does not wait. Leave it out for no limit: `Infinity` is
   * refused. Defaults to no limit.
   */
  readonly timeout?: number;
  /**
   * How long to wait for more messages from the first one on, in milliseconds, until there are `limit`. A plain queue's
   * messages have left Redis by then: if the process dies while it waits, they are lost. Defaults to 0, which takes
   * only what is there.
   */
  readonly wait?: number;
}

/** Options of `subscribe`, which a reliable queue extends. `T` is what the handler gets. */
export interface SubscribeOptions<T = unknown> {
  /** How many handlers may run at once: 1 to 10,000. Each has one message, or one batch. Defaults to 1. */
  readonly concurrency?: number;
  /**
   * Called with the error that a handler threw, and with the handler's input. A plain queue's message has left Redis: this is the
   * last chance to keep it, or to offer it again. A reliable queue's message has been settled.
   *
   * It may be async, and counts as part of the handler: the next message follows when it has finished, and `close()` waits for it.
   * An error that it throws itself is reported by an `error` event. Defaults to reporting each failure by an `error` event, without
   * the payload.
   */
  readonly onError?: OnHandlerError<T>;
}

/** Options of `subscribeBatch`, which a reliable queue extends. `Input` is what the handler gets. */
export interface BatchOptions<Input = unknown> extends SubscribeOptions<Input> {
  /** The most messages per call of the handler: 1 to 10,000. */
  readonly limit: number;
  /**
   * How long a batch waits to fill up, from its first message on, in milliseconds. The handler gets `limit` messages, or fewer when
   * the time is over. One batch is filled at a time. A plain queue's messages have left Redis by then: if the process dies while it
   * waits, they are lost. Each batch that is not full costs a few more commands. Defaults to 0, which takes only what is there.
   */
  readonly wait?: number;
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal. */
export function checkTakeMany(options: TakeManyOptions): TakeManyOptions {
  checkOptions("takeMany option", options, ["limit", "timeout", "wait", "signal"]);
  const { limit, timeout, wait, signal } = options;
  checkSignal(signal);
  checkWhole("limit", limit, 1, MAX_AT_ONCE);
  if (timeout !== undefined) checkDuration("timeout", timeout, { endless: "leave it out" });
  if (wait !== undefined) checkDuration("wait", wait);
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
 * Checks the options of a subscription of batches, and adds the defaults.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal.
 */
export function checkBatch<Options extends BatchOptions<any>>(
  options: Options,
  more: readonly string[] = [],
): Options & { readonly concurrency: number; readonly wait: number } {
  const checked = checkSubscribe(options, ["limit", "wait", ...more]);
  const { limit, wait = 0 } = options;
  checkWhole("limit", limit, 1, MAX_AT_ONCE);
  checkDuration("wait", wait);
  return { ...checked, wait };
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
const MAX_AT_ONCE = 10_000;
