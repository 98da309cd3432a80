import { checkFunction, checkOptions, checkSignal } from "../queue/checks.ts";
import type { CallOptions } from "../queue/options.ts";
import type { ChangeOptions, Progress } from "./change.ts";

/** Options of `setPartitions`. */
export interface SetPartitionsOptions extends CallOptions {
  /** Is called after each step that has brought something over. Costs nothing. Defaults to nobody. */
  readonly onProgress?: (progress: Progress) => void;
  /**
   * Keeps the ordinary queue of the same name as a part: what processes offer to it that do not know of the partitions is
   * taken from there, and found there by all others. Call again without it when the last of them has gone.
   * Defaults to false.
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
