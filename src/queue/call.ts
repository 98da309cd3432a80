import { bucketOfKey } from "./message/bucket.ts";
import { checkKey, checkOptions, checkSignal } from "./checks.ts";

/** Options of every call that talks to Redis. */
export interface CallOptions {
  /**
   * Ends the wait: the promise rejects with the signal's reason. Redis may still carry out a command that was already
   * sent.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Options of calls that look for a message by its id or its key. */
export interface FindOptions extends CallOptions {
  /**
   * The partition key, or the lane, that the message was offered with; only for partitioned queues.
   *
   * It saves asking every partition for a business key. An id names its partition already, and an ordinary queue
   * ignores this option.
   */
  readonly partitionKey?: string;
}

/** What a user's call carries down to the scripts that it runs. Undefined stands for a call without options. */
export interface Call {
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined;
  /** The bucket of the message that the call looks for, if the caller knows it. Only for partitioned queues. */
  readonly bucket?: number | undefined;
  /** For a partition: the fact that the caller knew when it chose the partition. The script checks it. */
  readonly knownFact?: string | undefined;
  /** The look is not urgent: it waits a moment for the same looks at other queues, and so many go in one command. */
  readonly together?: number | undefined;
}

/**
 * Checks the options of a call that takes only a `signal`.
 *
 * @throws {TypeError} if there is another option, or `signal` is not an AbortSignal.
 */
export function checkCall(options: CallOptions = {}, what = "call option"): Call | undefined {
  checkOptions(what, options, ["signal"]);
  checkSignal(options.signal);
  return callOf(options);
}

/**
 * Checks the options of a call that looks for a message.
 *
 * @throws {TypeError | RangeError} if an option is unknown or not legal.
 */
export function checkFind(options: FindOptions = {}): Call | undefined {
  checkOptions("call option", options, ["signal", "partitionKey"]);
  const { signal, partitionKey } = options;
  checkSignal(signal);
  if (partitionKey === undefined) return callOf(options);
  checkKey(partitionKey, "partitionKey");
  return { signal, bucket: bucketOfKey(partitionKey) };
}

/** The call with these options, which were checked. */
export function callOf(options: CallOptions | undefined): Call | undefined {
  return options?.signal && { signal: options.signal };
}
