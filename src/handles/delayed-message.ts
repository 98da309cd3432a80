import type { CallOptions } from "../queue/call.ts";
import type { FailedAttempt } from "../queue/message/failed-attempt.ts";
import type { OnlyIf } from "../queue/message/only-if.ts";
import type { MessageHeaders } from "../queue/message/headers.ts";
import type { MessageId } from "../queue/message/message.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { DelayedBytes } from "../delayed/delayed-messages.ts";

/** A message that is still delayed. */
export interface DelayedMessage<T> {
  readonly id: MessageId;
  /** Epoch milliseconds on the Redis server's clock. */
  readonly deadline: number;
  /** The payload; the last one if several were collected. */
  readonly payload: T;
  /** What was collected (`onDuplicate: "collect"`), in the order of the offers; undefined for a single payload. */
  readonly payloads?: readonly T[];
  /** The business key, if the message was offered with one. */
  readonly key: string | undefined;
  /** The headers, if the message was offered with any, to a reliable queue. */
  readonly headers: MessageHeaders | undefined;
  /** The condition that must hold when the message is due, if it was offered with one. Retries are not checked. */
  readonly onlyIf?: OnlyIf;
  /** For how many milliseconds after its deadline it may become ready, if it was offered with such a limit. */
  readonly deliverWithin?: number;
  /** The lane in which it waits for its turn once it is due, if it was offered with one. */
  readonly lane?: string;
  /** Its priority within its lane, if it was offered with one. */
  readonly priority?: number;
  /**
   * The last ten failed attempts of a message that waits for a retry in a reliable queue, oldest first. Otherwise
   * undefined.
   */
  readonly failures?: readonly FailedAttempt[];
}

/** The new id and deadline of a message whose deadline was changed. */
export type Rescheduled = Pick<DelayedMessage<unknown>, "id" | "deadline">;

/**
 * Decodes up to `limit` messages one by one; `read` begins when the first one is asked for. Messages that the codec
 * cannot read are left out and reported.
 */
export async function* decoded<T>(
  read: () => AsyncIterable<DelayedBytes>,
  payloads: Payloads<T>,
  limit = Infinity,
): AsyncGenerator<DelayedMessage<T>, void, void> {
  let left = limit;
  if (left === 0) return;
  for await (const message of read()) {
    const found = payloads.readable(() => payloads.decodeMessage(message));
    if (found === undefined) continue;
    yield found;
    if (--left === 0) return;
  }
}

/** Options of `cancelWhere`. */
export interface CancelWhereOptions extends CallOptions {
  /** Cancels nothing, and returns what would be cancelled. Defaults to false. */
  readonly dryRun?: boolean;
  /**
   * Called with the keys of cancelled messages, some hundred at a time; a promise that it returns is awaited. If it throws, the
   * call rejects with that error, and the remaining messages stay. Defaults to none.
   */
  readonly onKeys?: (keys: readonly string[]) => unknown;
}

/** The outcome of `cancelWhere`. */
// An alias, not an interface: users cannot name it, so their declarations write it out.
export type CancelWhereResult = {
  /** How many messages were cancelled, or would be. */
  readonly count: number;
  /** Their keys, in no particular order, up to {@link MOST_KEYS}; `onKeys` receives all of them. */
  readonly keys: readonly string[];
};

/** The most keys that `cancelWhere` returns: a queue may have millions. */
export const MOST_KEYS = 1000;
