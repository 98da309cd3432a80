import { checkFunction, checkOptions, checkWhole } from "../../queue/checks.ts";
import type { OnHandlerError } from "../../queue/consuming/handler.ts";
import { MAX_AT_ONCE, type SubscribeOptions } from "../../queue/consuming/take-options.ts";
import type { Delivery } from "./delivery.ts";

/** Options of a reliable queue's `subscribe`. */
export interface ReliableSubscribeOptions<T = unknown> {
  /** How many handlers may run at once: 1 to 10,000. Each has one message. Defaults to 1. */
  readonly concurrency?: number;
  /**
   * Called with the error of a handler and its payload, after the message was settled. It counts as part of the
   * handler's run. Defaults to reporting each error by an `error` event, without the payload.
   */
  readonly onError?: OnHandlerError<T>;
  /**
   * Returns the sequence of a message. Messages of one sequence are handled one after another in this process, in the
   * order of their delivery; messages without a sequence (undefined) in no order.
   *
   * If it throws, the handler has failed. A message that waits for its sequence occupies one of the `concurrency`
   * handlers. A message that failed is retried behind those that were delivered meanwhile. Defaults to no sequences.
   */
  readonly orderBy?: (payload: T, delivery: Delivery<T>) => string | undefined;
}

/** Options of `subscribeBatch`. */
export interface BatchSubscribeOptions<T = unknown> {
  /** The most messages per call of the handler: 1 to 10,000. */
  readonly limit: number;
  /** How many handlers may run at once: 1 to 10,000. Each has up to `limit` messages. Defaults to 1. */
  readonly concurrency?: number;
  /** Called with the error of a handler and its deliveries; otherwise as in {@link ReliableSubscribeOptions}. */
  readonly onError?: OnHandlerError<readonly Delivery<T>[]>;
}

/** Options of `route`. */
export interface RouteOptions<T = unknown> extends ReliableSubscribeOptions<T> {
  /**
   * Decides what happens to a message that no route takes. `"reject"` makes it a dead letter. `"ack"` acknowledges it.
   * `"leave"` makes it ready again after a second, as if it had not been delivered, for another process that has a
   * route for it. Defaults to `"reject"`.
   */
  readonly unknown?: "reject" | "ack" | "leave";
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if an option is not legal. */
export function checkReliableSubscribe<T>(
  options: ReliableSubscribeOptions<T>,
  more: readonly string[] = [],
): ReliableSubscribeOptions<T> & { readonly concurrency: number } {
  checkOptions("subscribe option", options, ["concurrency", "onError", "orderBy", ...more]);
  const { concurrency = 1, onError, orderBy } = options;
  checkWhole("concurrency", concurrency, 1, MAX_AT_ONCE);
  if (onError !== undefined) checkFunction("onError", onError);
  if (orderBy !== undefined) checkFunction("orderBy", orderBy);
  return { ...options, concurrency };
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if an option is not legal. */
export function checkBatchSubscribe<T>(
  options: BatchSubscribeOptions<T>,
): BatchSubscribeOptions<T> & Required<Pick<SubscribeOptions, "concurrency">> {
  checkOptions("subscribe option", options, ["limit", "concurrency", "onError"]);
  const { limit, concurrency = 1, onError } = options;
  checkWhole("limit", limit, 1, MAX_AT_ONCE);
  checkWhole("concurrency", concurrency, 1, MAX_AT_ONCE);
  if (onError !== undefined) checkFunction("onError", onError);
  return { ...options, concurrency };
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if an option is not legal. */
export function checkRoute<T>(
  options: RouteOptions<T>,
): RouteOptions<T> & Required<Pick<RouteOptions<T>, "concurrency" | "unknown">> {
  const checked = checkReliableSubscribe(options, ["unknown"]);
  const { unknown = "reject" } = options;
  if (unknown !== "reject" && unknown !== "ack" && unknown !== "leave") {
    throw new TypeError(
      `unknown must be "reject", "ack" or "leave", got ${JSON.stringify(unknown)}`,
    );
  }
  return { ...checked, unknown };
}
