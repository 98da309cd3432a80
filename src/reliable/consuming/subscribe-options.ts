import { checkFunction, checkOptions, checkWhole } from "../../queue/checks.ts";
import type { OnHandlerError } from "../../queue/consuming/handler.ts";
import { MAX_AT_ONCE, type SubscribeOptions } from "../../queue/consuming/take-options.ts";
import type { Delivery } from "./delivery.ts";

/** Options of a reliable queue's `subscribe`. */
export interface ReliableSubscribeOptions<T = unknown> {
  /** How many handlers may run at once, 1 to 10,000. Each may have one message in hand. Defaults to 1. */
  readonly concurrency?: number;
  /**
   * Called with what a handler threw, and its payload, when it is settled what becomes of the message. It is part of
   * the handler's turn. Defaults to reporting each failure by an `error` event, without the payload.
   */
  readonly onError?: OnHandlerError<T>;
  /**
   * Messages for which it returns the same text are handled one after another in this process, in the order in which
   * they came; undefined: in no order. One that waits takes up a handler's place. A message that failed comes back
   * behind those that came meanwhile. What it throws is a failure of the handler. Defaults to no order.
   */
  readonly orderBy?: (payload: T, delivery: Delivery<T>) => string | undefined;
}

/** Options of `subscribeBatch`. */
export interface BatchSubscribeOptions<T = unknown> {
  /** How many messages a handler is given at most, 1 to 10,000. */
  readonly max: number;
  /** How many handlers may run at once, 1 to 10,000. Each may have `max` messages in hand. Defaults to 1. */
  readonly concurrency?: number;
  /** Called with what a handler threw, and its deliveries; otherwise as in {@link ReliableSubscribeOptions}. */
  readonly onError?: OnHandlerError<readonly Delivery<T>[]>;
}

/** Options of `route`. */
export interface RouteOptions<T = unknown> extends ReliableSubscribeOptions<T> {
  /**
   * What becomes of a message that no route takes. `"reject"`: it becomes a dead letter. `"ack"`: it is done.
   * `"leave"`: it goes back for a second, as if it had not been delivered, for another process that knows it.
   * Defaults to `"reject"`.
   */
  readonly unknown?: "reject" | "ack" | "leave";
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal. */
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

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal. */
export function checkBatchSubscribe<T>(
  options: BatchSubscribeOptions<T>,
): BatchSubscribeOptions<T> & Required<Pick<SubscribeOptions, "concurrency">> {
  checkOptions("subscribe option", options, ["max", "concurrency", "onError"]);
  const { max, concurrency = 1, onError } = options;
  checkWhole("max", max, 1, MAX_AT_ONCE);
  checkWhole("concurrency", concurrency, 1, MAX_AT_ONCE);
  if (onError !== undefined) checkFunction("onError", onError);
  return { ...options, concurrency };
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal. */
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
