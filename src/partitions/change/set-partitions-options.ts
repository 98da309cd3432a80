import type { CallOptions } from "../../queue/call.ts";
import { checkFunction, checkOptions, checkSignal } from "../../queue/checks.ts";
import type { ChangeOptions, ChangeProgress } from "./change.ts";

/** Options of `setPartitions`. */
export interface SetPartitionsOptions extends CallOptions {
  /**
   * Called after each step that has migrated messages or has found some left. Costs nothing. Defaults to no callback.
   */
  readonly onProgress?: (progress: ChangeProgress) => void;
  /**
   * Makes the ordinary queue of the same name a part of this one, for as long as some processes run without the option
   * `partitions`. All processes take the messages that those offer, and processes with the option also find them. Only
   * messages that a call looks for are migrated. Call again without `keepOrdinary` once no process runs without the
   * option. Costs one more partition, and one more script for each call that looks for a message. Defaults to false.
   */
  readonly keepOrdinary?: boolean;
}

/**
 * Checks the options of `setPartitions`, and fills in the defaults.
 *
 * @throws {TypeError} naming the option, the rule and the value, if an option is not legal.
 */
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
