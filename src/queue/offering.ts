import { OfferError, OfferManyError } from "../errors.ts";
import type { KeyedReply, Outcome } from "../lua/delayed/offer-keyed.ts";
import type { OnceStage } from "../lua/places/once.ts";
import type { OnlyIf } from "./message/only-if.ts";
import type { MessageHeaders } from "./message/headers.ts";
import type { Occurrence } from "./message/occurrence.ts";
import type { Delay } from "../time/delay.ts";
import { formatMessageId, messageIdAt, packMember, type MessageId } from "./message/message.ts";

/** The outcome of an offer. */
export interface OfferResult {
  /** Identifies the message from now on. */
  readonly id: MessageId;
  /** When the message is due: epoch milliseconds on the Redis server's clock. */
  readonly deadline: number;
  /**
   * `"added"` for a new message. If a delayed or retrying message held the key, or with `once` one in any stage: `"existing"` left that message,
   * whose `id` and `deadline` these are; `"replaced"` put this one in its place; `"updated"` did too, but with the old
   * deadline; `"collected"` did too, and it has the payloads of the old one besides.
   */
  readonly outcome: Outcome;
  /** If an offer with `once` has found a message: how far that has come. */
  readonly stage?: OnceStage;
  /** If that was handled: when (epoch ms). */
  readonly handledAt?: number;
}

/** When a message becomes due: after `delay`, or at `deadline` (epoch ms). */
export type Due = { readonly delay: Delay } | { readonly deadline: number };

// The scripts take a due time as two columns, of which one is empty. A spread of both would cost each offer.

export function delayOf(due: Due): Delay | "" {
  return "delay" in due ? due.delay : "";
}

export function deadlineOf(due: Due): number | "" {
  return "delay" in due ? "" : due.deadline;
}

/** An encoded message on its way to Redis. */
export interface Offering {
  readonly payload: Buffer;
  readonly due: Due;
  readonly key?: string | undefined;
  /** The rule for a key that another message holds. */
  readonly rule?: "ignore" | "replace" | "update" | Collect | undefined;
  /** With `rule: "replace"` or {@link Collect}: how long the key may wait altogether, in milliseconds. */
  readonly maxWait?: number | undefined;
  /** With `rule: "ignore"`, to a reliable queue: the key stays taken until the message was handled, and for so long after it (ms). */
  readonly once?: number | undefined;
  readonly headers?: MessageHeaders | undefined;
  /** What has to hold when it is due; otherwise it is dropped. */
  readonly onlyIf?: OnlyIf | undefined;
  /** For how many milliseconds after its deadline it may be delivered; later it is dropped. */
  readonly deliverWithin?: number | undefined;
  /** The lane in which it waits for its turn. */
  readonly lane?: string | undefined;
  readonly priority?: number | undefined;
  /** The tick of a schedule that it stands for. */
  readonly occurrence?: Occurrence | undefined;
  /** The hash of its key to write into the id. Defaults to a random one. */
  readonly hash?: number | undefined;
  /** To a partition: the fact by which the caller chose it; see {@link Queue.run}. */
  readonly knownFact?: string | undefined;
  /** To a partition: receives the id once the offer may have been stored, so that another attempt uses it again. */
  readonly sentAs?: { id?: Buffer };
}

/** Collects up to so many payloads, and up to so many bytes. */
export type Collect = `collect,${number},${number}`;

/** Whether an offer collects: Redis then stores other bytes than it sends. */
export function collects({ rule }: Offering): boolean {
  return rule?.startsWith("collect") === true;
}

/** The member of the timeouts ZSET that an offer stores under this id, unless it {@link collects}. The same in each attempt. */
export function memberOf(offering: Offering, id: Buffer): Buffer {
  const { payload, key, headers, onlyIf, deliverWithin, occurrence, lane, priority, once } =
    offering;
  const hasMore =
    (headers ?? onlyIf ?? deliverWithin ?? occurrence ?? lane ?? priority ?? once) !== undefined;
  const more = hasMore
    ? { headers, onlyIf, deliverWithin, occurrence, lane, priority: priority || undefined, once }
    : undefined;
  return packMember(id, payload, key, more);
}

/** The result of an offer under this id that Redis has answered so. */
export function resultOf(
  { deadline, outcome, holder, stage, handledAt }: KeyedReply,
  id: Buffer,
): OfferResult {
  return {
    id: holder === undefined ? formatMessageId(deadline, id) : messageIdAt(holder),
    deadline,
    outcome,
    ...(stage !== undefined && { stage }),
    ...(handledAt !== undefined && { handledAt }),
  };
}

/**
 * Makes each of these offers to the queue of this name; returns the results in the same order.
 *
 * @throws {OfferManyError} if Redis did not accept all of them.
 */
export async function offerEach(
  queue: string,
  offerings: readonly Offering[],
  offer: (offering: Offering) => Promise<OfferResult>,
): Promise<OfferResult[]> {
  const results = await Promise.all(
    offerings.map((offering) =>
      offer(offering).catch((error: unknown) => {
        if (error instanceof OfferError) return error;
        throw error;
      }),
    ),
  );
  if (!results.some((result) => result instanceof OfferError)) return results as OfferResult[];
  throw new OfferManyError(queue, results);
}
