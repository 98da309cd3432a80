import type { CallOptions } from "./call.ts";
import type { InstantLike } from "./instant.ts";
import type { MessageHeaders } from "./message/headers.ts";
import type { OnlyIf } from "./message/only-if.ts";

/**
 * Options of one offer. Those of an offer with headers, which only a reliable queue takes, are
 * `OfferOptions<MessageHeaders>`.
 *
 * An offer whose `signal` is aborted rejects with an {@link OfferError}, which says whether the
 * message may be stored, and whose `cause` is the signal's reason.
 */
export interface OfferOptions<Headers extends MessageHeaders = never> extends CallOptions {
  /**
   * A business key, such as `"order:42"`, by which the message can be cancelled, rescheduled and found: 1 to 200
   * bytes; must not look like a `MessageId`.
   *
   * In a queue, a key is held by at most one delayed or retrying message; it is free while its message is ready, in
   * flight or dead. Costs an entry of some 150 bytes in a HASH, and two commands; each retry costs two more. Defaults to
   * no key.
   */
  readonly key?: string;

  /**
   * Decides what happens if a delayed or retrying message holds the key. `"ignore"` leaves that message, and returns its
   * id. `"replace"` puts this message in its place. `"update"` does too, but leaves the deadline as it is. Nothing else
   * of the old message is kept: not its headers, and not its `onlyIf` or `deliverWithin`. Defaults to `"ignore"`.
   *
   * `"collect"`, only to a reliable queue, replaces a delayed message, but keeps its payloads in front of this one: a delivery
   * has all as its `payloads`, in the order of the offers. A message that waits for its turn or for a retry stays, and
   * passes the key to this one. Costs Redis the bytes of all payloads anew with each offer.
   */
  readonly onDuplicate?: "ignore" | "replace" | "update" | "collect";

  /**
   * With `"collect"`: how many payloads a message has at most, 2 to 1,000; and all together have at most the queue's
   * `maxPayloadBytes`. A message that is full is due at once, and the offer that found it so is the first of the next.
   * Defaults to 100.
   */
  readonly maxCollected?: number;

  /**
   * Only to a reliable queue, with a key and without `onDuplicate` (or with `"ignore"`): the key is taken until the message was
   * handled, and not just while it is delayed or retrying. `"handled"`: until then. `{ for: ms }`: for so many milliseconds longer,
   * a whole number up to 365 days. An offer with `once` that finds such a message in any stage adds none: its `outcome` is
   * `"existing"`, and `stage` says how far that one has come. The key is free as soon as the message is dead, cancelled, revoked
   * or dropped. See the guide, Once.
   *
   * Offers without `once` do not see messages that are ready, running or handled: use one or the other for a key. Costs 15 bytes,
   * some ten commands for each message, and 200 bytes for each key while it is remembered. Defaults to neither.
   */
  readonly once?: "handled" | { readonly for: number };

  /**
   * With `"replace"` or `"collect"`: how many milliseconds after its key was first offered the message is due at the latest, however
   * often it is replaced, and by whom: the earliest limit stays until the key is free.
   *
   * The first offer is the first one since the key was last free, with or without `maxWait`. Costs 8 bytes of the key's entry.
   * Defaults to no limit.
   */
  readonly maxWait?: number;

  /**
   * By how many milliseconds the message is later at most, a whole number up to 30 days: so that many messages for one instant
   * do not come at once. With a `key` it is the same delay each time, in every process; without, a random one. It is part
   * of the deadline that the offer returns. Costs nothing in Redis. Defaults to 0.
   */
  readonly spread?: number;

  /**
   * In a partitioned queue: messages with the same partition key, 1 to 200 bytes, are in the same partition. Always use
   * a key with the same partition key, since a key is unique only there; calls by key that do not name it ask all
   * partitions.
   *
   * Changes nothing in an ordinary queue until it gets partitions. With a `lane` it must be the lane. Defaults to the lane,
   * and without one to the key; a message with neither may be in any partition.
   */
  readonly partitionKey?: string;

  /**
   * What has to be true of a key of your own when the message is due: `{ key: "{orders}:42:status", is: "unpaid" }`.
   * Otherwise the message is dropped: its key is free, `counters` and `stats` count it, and the diagnostics channel
   * `delayline:dropped` tells of it.
   *
   * Redis asks it in the step that makes the message ready, and never again: a ready message and a retry are delivered
   * without. If Redis cannot say (a key of another type, an ACL), the message is delivered. Java's and older transfers do
   * not ask. Costs Redis some 3 us and a read when the message is due, and its bytes. Defaults to none.
   */
  readonly onlyIf?: OnlyIf;

  /**
   * For how many milliseconds after its deadline the message may become ready; later it is dropped, as with `onlyIf`.
   * That happens if no process moved messages meanwhile, or the queue was paused. What is ready in time waits for its
   * consumer however long. At least 1,000, unless the queue has `anyTime`: every message is moved some milliseconds late.
   * Costs 15 bytes. Defaults to no limit.
   */
  readonly deliverWithin?: number;

  /**
   * In a queue whose `flow` has lanes: the lane in which the message waits for its turn, such as a tenant, 1 to 100 bytes.
   * In a partitioned queue, all messages of a lane are in one partition. Other queues carry it along and ignore it. Costs its bytes and five more. Defaults to a lane without a name.
   */
  readonly lane?: string;

  /**
   * In a queue whose `flow` has lanes: a whole number from -100 to 100; of the messages that wait in its lane, the higher ones
   * become ready first. Those that are ready already are not overtaken. Costs eight bytes. Defaults to 0.
   */
  readonly priority?: number;

  /**
   * Only to a reliable queue: carried with the message, beside its payload, such as `{ traceparent: "..." }`. Each delivery
   * has them. 64 headers at most; names of 1 to 200 bytes; 8 KiB altogether.
   *
   * Costs their bytes in Redis, and seven more for each. Defaults to none.
   */
  readonly headers?: Headers;
}

/** One message of `offerMany`. One with headers, for a reliable queue, is a `NewMessage<T, MessageHeaders>`. */
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

/** Whether the options of a call also offer messages. What is no object offers nothing. */
export function hasOffer<With extends { readonly offer: unknown }>(
  options: object | With,
): options is With {
  const given: unknown = options;
  return typeof given === "object" && given !== null && "offer" in given;
}
