import { bucketOfKey } from "./message/bucket.ts";
import { checkKey, checkOptions, checkSignal } from "./checks.ts";
import type { CallOptions } from "./options.ts";

/** Options of calls that look for a message by its id or its key. */
export interface FindOptions extends CallOptions {
  /**
   * The partition key that the message was offered with; only for partitioned queues.
   *
   * It saves asking every partition for a business key. An id names its partition already, and an ordinary queue
   * ignores this option.
   */
  readonly partitionKey?: string;
}

/** Where a message is, as far as the caller knows. Only for partitioned queues. */
export interface Hint {
  readonly bucket?: number | undefined;
  /** The fact that was known when the partition was chosen; see {@link Queue.run}. */
  readonly knownFact?: string | undefined;
}

/**
 * Checks the options of a call that looks for a message.
 *
 * @throws {TypeError | RangeError} if an option is unknown or not legal.
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
