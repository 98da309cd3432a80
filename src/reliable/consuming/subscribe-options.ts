import { checkFunction } from "../../queue/checks.ts";
import {
  checkBatch,
  checkSubscribe,
  type BatchOptions,
  type SubscribeOptions,
} from "../../queue/consuming/take-options.ts";
import type { Delivery } from "./delivery.ts";
import { checkTimeLimit, type TimeLimit, type TimeLimitOptions } from "./time-limit.ts";

/** Options of a reliable queue's `subscribe`, besides those of any queue. */
export interface ReliableSubscribeOptions<T = unknown>
  extends SubscribeOptions<T>, TimeLimitOptions {
  /**
   * Returns the sequence of a message. Messages of one sequence are handled one after another in this process, in the
   * order of their delivery; messages without a sequence (undefined) in no order.
   *
   * If it throws, the handler has failed. A message that waits for its sequence occupies one of the `concurrency`
   * handlers. A failed message is retried after the messages delivered in the meantime. Defaults to no sequences.
   */
  readonly orderBy?: (payload: T, delivery: Delivery<T>) => string | undefined;
}

/** Options of a reliable queue's `subscribeBatch`. Its handler gets several deliveries. */
export interface BatchSubscribeOptions<T = unknown>
  extends BatchOptions<readonly Delivery<T>[]>, TimeLimitOptions {}

/** The time that each call of a handler has, as its options say. */
interface Timed {
  readonly time: TimeLimit | undefined;
}

const TIMES = ["timeLimit", "grace"];

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
): ReliableSubscribeOptions<T> & { readonly concurrency: number } & Timed {
  const checked = checkSubscribe(options, ["orderBy", ...TIMES, ...more]);
  if (options.orderBy !== undefined) checkFunction("orderBy", options.orderBy);
  return { ...checked, time: checkTimeLimit(options) };
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if an option is not legal. */
export function checkBatchSubscribe<T>(
  options: BatchSubscribeOptions<T>,
): BatchSubscribeOptions<T> &
  Required<Pick<BatchSubscribeOptions<T>, "concurrency" | "wait">> &
  Timed {
  return { ...checkBatch(options, TIMES), time: checkTimeLimit(options) };
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if an option is not legal. */
export function checkRoute<T>(
  options: RouteOptions<T>,
): RouteOptions<T> & Required<Pick<RouteOptions<T>, "concurrency" | "unknown">> & Timed {
  const checked = checkReliableSubscribe(options, ["unknown"]);
  const { unknown = "reject" } = options;
  if (unknown !== "reject" && unknown !== "ack" && unknown !== "leave") {
    throw new TypeError(
      `unknown must be "reject", "ack" or "leave", got ${JSON.stringify(unknown)}`,
    );
  }
  return { ...checked, unknown };
}
