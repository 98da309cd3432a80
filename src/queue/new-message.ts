import type { CallOptions } from "./call.ts";
import type { InstantLike } from "./instant.ts";
import type { MessageHeaders } from "./message/headers.ts";
import type { OnlyIf } from "./message/only-if.ts";

/**
 * Options of one offer. With headers, which only a reliable queue takes, their type is `OfferOptions<MessageHeaders>`.
 *
 * An offer whose `signal` is aborted rejects with an {@link OfferError}, which says whether the
 * message may be stored, and whose `cause` is the signal's reason.
 */
export interface OfferOptions<Headers extends MessageHeaders = never> extends CallOptions {
  /**
   * A business key, such as `"order:42"`, by which the message can be cancelled, rescheduled and found: 1 to 200
   * bytes; must not look like a `MessageId`.
   *
   * In a queue, at most one delayed or retrying message holds a key; the key is free while its message is ready, in flight or dead.
   * Costs an entry of some 150 bytes in a HASH, and two commands; each retry costs two more. Defaults to no key.
   */
  readonly key?: string;

  /**
   * Decides what happens if a delayed or retrying message holds the key. `"ignore"` keeps that message, and returns its id.
   * `"replace"` puts this message in its place. `"update"` does, too, but keeps the old deadline. Nothing else of the old message
   * is kept: neither its headers nor its `onlyIf` or `deliverWithin`. Defaults to `"ignore"`.
   *
   * `"collect"`, for reliable queues only, replaces a delayed message but keeps its payloads in front of this one: the delivery has
   * all of them as its `payloads`, in the order of the offers. A message that waits for its turn or for a retry stays, and passes
   * the key to this one. Each offer makes Redis write all collected payloads again.
   */
  readonly onDuplicate?: "ignore" | "replace" | "update" | "collect";

  /**
   * With `"collect"`: the most payloads of a message, 2 to 1,000. Together they may have the queue's `maxPayloadBytes`.
   * A full message is due at once, and the offer that found it full begins the next one. Defaults to 100.
   */
  readonly maxCollected?: number;

  /**
   * Keeps the key taken until the message is handled, not just while it is delayed or retrying: `"handled"` until then,
   * `{ for: ms }` for this many milliseconds longer, a whole number up to 365 days. For reliable queues only, with a key and
   * without `onDuplicate` (or with `"ignore"`). While the key is taken, an offer with `once` adds no message: its `outcome` is
   * `"existing"`, and `stage` says how far the first message has come. The key is free as soon as that message is dead, cancelled,
   * revoked or dropped. See the guide, Once.
   *
   * Offers without `once` do not see messages that are ready, running or handled, so offer a key always with `once` or always
   * without. Costs 15 bytes and some ten commands for each message, and 200 bytes for each key while it is remembered. Defaults to
   * neither.
   */
  readonly once?: "handled" | { readonly for: number };

  /**
   * With `"replace"` or `"collect"`: the longest time from the key's first offer until the message is due, in milliseconds, however
   * often it is replaced. The earliest limit of any offer counts until the key is free.
   *
   * The first offer is the first since the key was last free, with or without `maxWait`. Costs 8 bytes in the key's entry. Defaults
   * to no limit.
   */
  readonly maxWait?: number;

  /**
   * The longest extra delay in milliseconds, a whole number up to 30 days, so that many messages for one instant do not come at
   * once. With a `key` the extra delay is the same each time, in every process; without one it is random. The deadline that the
   * offer returns includes it. Costs nothing in Redis. Defaults to 0.
   */
  readonly spread?: number;

  /**
   * In a partitioned queue: messages with the same partition key, 1 to 200 bytes, are in the same partition. Always use a key with
   * the same partition key: a key is unique only within its partition. Calls by key without the partition key ask all partitions.
   *
   * Has no effect in an ordinary queue until it is partitioned. With a `lane` it must equal the lane. Defaults to the lane, and
   * without one to the key; a message with neither may be in any partition.
   */
  readonly partitionKey?: string;

  /**
   * A condition on a Redis key of your own that must hold when the message is due: `{ key: "{orders}:42:status", is: "unpaid" }`.
   * Otherwise the message is dropped: its business key is free, `counters` and `stats` count it, and the diagnostics channel
   * `delayline:dropped` reports it.
   *
   * Redis checks it in the step that makes the message ready, and never again: ready messages and retries are not checked. If Redis
   * cannot check it (a key of another type, an ACL), the message is delivered. Transfers of Java and of older releases do not
   * check. Costs its bytes, and when the message is due a read of some 3 us. Defaults to none.
   */
  readonly onlyIf?: OnlyIf;

  /**
   * For how many milliseconds after its deadline the message may become ready; later it is dropped, as with `onlyIf`. That happens
   * if no process moved messages in time, or the queue was paused. A message that became ready in time waits for its consumer
   * without limit. At least 1,000, unless the queue has `anyTime`, since every message moves some milliseconds late. Costs 15
   * bytes. Defaults to no limit.
   */
  readonly deliverWithin?: number;

  /**
   * In a queue whose `flow` has lanes: the lane in which the message waits for its turn, such as a tenant, 1 to 100 bytes. In a
   * partitioned queue, all messages of a lane are in one partition. A queue without lanes stores it and ignores it. Costs its bytes
   * and five more. Defaults to a lane without a name.
   */
  readonly lane?: string;

  /**
   * In a queue whose `flow` has lanes: a whole number from -100 to 100. Among the messages that wait in its lane, higher ones
   * become ready first. They do not overtake messages that are already ready. Costs eight bytes. Defaults to 0.
   */
  readonly priority?: number;

  /**
   * Strings that travel with the message beside its payload, such as `{ traceparent: "..." }`; each delivery has them. For reliable
   * queues only. At most 64 headers, with names of 1 to 200 bytes and 8 KiB in total.
   *
   * Costs their bytes in Redis, and seven more for each. Defaults to none.
   */
  readonly headers?: Headers;
}

/** One message of `offerMany`. With headers, for a reliable queue, it is a `NewMessage<T, MessageHeaders>`. */
export type NewMessage<T, Headers extends MessageHeaders = never> = Omit<
  OfferOptions<Headers>,
  "signal"
> & { readonly payload: T } & WhenDue;

/** When a message is due: in `delay` milliseconds (fractions count), or at an instant. Exactly one of the two. */
type WhenDue =
  | { readonly delay: number; readonly at?: undefined }
  | {
      /** A date, or epoch milliseconds; fractions are rounded up. */
      readonly at: InstantLike;
      readonly delay?: undefined;
    };

/** A handle of a queue that takes messages with these payloads and headers. */
export interface OffersTo<T, Headers extends MessageHeaders> {
  readonly name: string;
  offer(payload: T, delay: number, options?: OfferOptions<Headers>): Promise<unknown>;
}

/** Whether the options of a call also offer messages. Anything but an object offers nothing. */
export function hasOffer<With extends { readonly offer: unknown }>(
  options: object | With,
): options is With {
  const given: unknown = options;
  return typeof given === "object" && given !== null && "offer" in given;
}
