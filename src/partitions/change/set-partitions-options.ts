import { checkFunction, checkOptions, checkSignal } from "../../queue/checks.ts";
import type { CallOptions } from "../../queue/options.ts";
import type { ChangeOptions, ChangeProgress } from "./change.ts";

/** Options of `setPartitions`. */
export interface SetPartitionsOptions extends CallOptions {
  /** Is called after each step that has brought something over. Costs nothing. Defaults to nobody. */
  readonly onProgress?: (progress: ChangeProgress) => void;
  /**
   * Makes the ordinary queue of the same name a part, and keeps it one, for processes that do not know of the
   * partitions: what they offer is taken by all, and found by those that know. Nothing is brought over, but what is
   * looked for. Call again without it when the last of them has gone. Costs one partition more, and a script more for
   * each call that looks for a message. Defaults to false.
   */
  readonly keepOrdinary?: boolean;
}

/** @throws {TypeError} naming the option, the rule and the value, if one is not legal. */
export function checkSetPartitions(options: SetPartitionsOptions): ChangeOptions {
  checkOptions("setPartitions option", options, ["onProgress", "keepOrdinary", "signal"]);
  const { onProgress = () => {}, keepOrdinary = false, signal } = options;
  checkSignal(signal);
  checkFunction("onProgress", onProgress);
  if (typeof keepOrdinary !== "boolean") {
    throw new TypeError(`keepOrdinary must be a boolean, got ${typeof keepOrdinary}`);
  }
  return { signal, onProgress, keepsOrdinary: keepOrdinary };
}
