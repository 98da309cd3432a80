import { checkDuration, checkKey, checkOptions, checkSignal } from "../queue/checks.ts";
import { bucketOfKey } from "../queue/message/bucket.ts";
import { checkedHeaders } from "../queue/message/headers.ts";
import type { CallOptions } from "../queue/options.ts";
import type { Offering } from "./offer-batch.ts";

/**
 * Options of one offer. If its `signal` is aborted it rejects with an {@link OfferError} that says whether the
 * message may be stored; its `cause` is the signal's reason.
 */
export interface OfferOptions extends CallOptions {
  /**
   * A business key, such as `"order:42"`: by it the message can be cancelled, rescheduled and found.
   * A key has one delayed message at most in a queue. 1 to 200 bytes; must not look like a `MessageId`.
   *
   * Costs an entry in a HASH, some 150 bytes and two commands.
   */
  readonly key?: string;

  /**
   * What to do if the key has a delayed message already. `"reject"`: leave the delayed message, and return its
   * id. `"replace"`: new payload, new deadline. `"keep"`: new payload, its deadline.
   * Defaults to `"reject"`.
   */
  readonly onDuplicate?: "reject" | "replace" | "keep";

  /**
   * With `"replace"`: however often the message is replaced, it is due at the latest this many
   * milliseconds after its key was first offered. That is the first offer since the key was last free,
   * with or without `maxWait`. Defaults to no limit.
   */
  readonly maxWait?: number;

  /**
   * In a queue in partitions: messages with the same partition key are in the same partition, whatever their number.
   * It decides for the business key, too: a key is unique per partition key, so who gives one gives it always. 1 to 200
   * bytes. In an ordinary queue it changes nothing, until that gets partitions. Defaults to the key; a message with
   * neither may be in any.
   */
  readonly partitionKey?: string;
}

/**
 * Checks the options of one offer; returns its key, what to do if that has a delayed message, and its headers,
 * which are an option only where the queue takes them.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value.
 */
export function offerRule(
  options: OfferOptions & { readonly headers?: unknown },
  takesHeaders = false,
): Pick<Offering, "key" | "rule" | "maxWait" | "headers" | "bucket"> {
  checkOptions("offer option", options, [...messageOptions(takesHeaders), "signal"]);
  checkSignal(options.signal);
  const rule = keyRule(options);
  const headers = takesHeaders ? checkedHeaders(options.headers) : undefined;
  const bucket = bucketFor(options);
  return {
    ...rule,
    ...(headers !== undefined && { headers }),
    ...(bucket !== undefined && { bucket }),
  };
}

function bucketFor({ key, partitionKey }: OfferOptions): number | undefined {
  if (partitionKey !== undefined) checkKey(partitionKey, "partitionKey");
  const text = partitionKey ?? key;
  return text === undefined ? undefined : bucketOfKey(text);
}

function keyRule(options: OfferOptions): Pick<Offering, "key" | "rule" | "maxWait"> {
  const { key, onDuplicate = "reject", maxWait } = options;
  if (key === undefined) {
    if (options.onDuplicate !== undefined) throw new TypeError("onDuplicate needs a key");
    if (maxWait !== undefined) throw new TypeError("maxWait needs a key");
    return {};
  }
  checkKey(key);
  if (!["reject", "replace", "keep"].includes(onDuplicate)) {
    throw new TypeError(
      `onDuplicate must be "reject", "replace" or "keep", got ${JSON.stringify(onDuplicate)}`,
    );
  }
  if (maxWait === undefined) return { key, rule: onDuplicate };
  if (onDuplicate !== "replace") {
    throw new TypeError(`maxWait goes with onDuplicate "replace", got "${onDuplicate}"`);
  }
  checkDuration("maxWait", maxWait);
  return { key, rule: onDuplicate, maxWait };
}

/**
 * Checks one message of `offerMany`, but for its options; `name` is what errors call it.
 *
 * @throws {TypeError | RangeError} naming the property, the rule and the value.
 */
export function checkNewMessage(name: string, message: unknown, takesHeaders = false): void {
  if (typeof message !== "object" || message === null) {
    throw new TypeError(
      `${name} must be an object, got ${message === null ? "null" : typeof message}`,
    );
  }
  const known = ["payload", "delay", ...messageOptions(takesHeaders)];
  checkOptions(`property of ${name}`, message, known);
  if (!("payload" in message)) throw new TypeError(`${name} must have a payload`);
  checkDuration(`${name}.delay`, "delay" in message ? message.delay : undefined);
}

function messageOptions(takesHeaders: boolean): readonly string[] {
  return takesHeaders ? [...RULE_OPTIONS, "headers"] : RULE_OPTIONS;
}

const RULE_OPTIONS = ["key", "onDuplicate", "maxWait", "partitionKey"];
