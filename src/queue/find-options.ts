import { bucketOfKey } from "./message/bucket.ts";
import { checkKey, checkOptions, checkSignal } from "./checks.ts";
import type { CallOptions } from "./options.ts";

/** Options of calls that look for a message by its id or its key. */
export interface FindOptions extends CallOptions {
  /**
   * In a queue in partitions: the partition key that the message was offered with. A business key alone does not tell
   * where its message is: without this all partitions are asked. An id tells, and an ordinary queue needs none.
   */
  readonly partitionKey?: string;
}

/** Where a message is, as far as the caller knows. It concerns queues in partitions only. */
export interface Hint {
  readonly bucket?: number | undefined;
  /** What was known when this partition was chosen; see {@link Queue.run}. */
  readonly knownFact?: string | undefined;
}

/**
 * Checks the options of a call that looks for a message; returns its signal, and the hint that they give.
 *
 * @throws {TypeError | RangeError} if there is another option, or one is not legal.
 */
export function checkFind(
  options: FindOptions = {},
): readonly [signal: AbortSignal | undefined, hint: Hint | undefined] {
  checkOptions("call option", options, ["signal", "partitionKey"]);
  const { signal, partitionKey } = options;
  checkSignal(signal);
  if (partitionKey === undefined) return [signal, undefined];
  checkKey(partitionKey, "partitionKey");
  return [signal, { bucket: bucketOfKey(partitionKey) }];
}
