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
  /** Of several that were collected, the last one. */
  readonly payload: T;
  /** What was collected (`onDuplicate: "collect"`), in the order of the offers; undefined for a single payload. */
  readonly payloads?: readonly T[];
  /** The business key, if the message was offered with one. */
  readonly key: string | undefined;
  /** The headers, if the message was offered with any, to a reliable queue. */
  readonly headers: MessageHeaders | undefined;
  /** What has to hold when the message is due, if it was offered with that. Retries are not asked. */
  readonly onlyIf?: OnlyIf;
  /** For how many milliseconds after its deadline it may become ready, if it was offered with that. */
  readonly deliverWithin?: number;
  /** The lane in which it waits for its turn once it is due, if it was offered with one. */
  readonly lane?: string;
  /** Its priority within its lane, if it was offered with one. */
  readonly priority?: number;
  /**
   * Of a message that waits for a retry in a reliable queue: its last ten failed attempts, oldest first. Otherwise
   * undefined.
   */
  readonly failures?: readonly FailedAttempt[];
}

/** The new id and deadline of a message whose deadline was changed. */
export type Rescheduled = Pick<DelayedMessage<unknown>, "id" | "deadline">;

/**
 * Decodes up to `limit` of the messages that `read` begins to read with the first one, one by one. Those that the codec
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
   * Called with all keys, some hundred at a time, as their messages are cancelled; a promise that it returns is awaited.
   * If it throws, the call rejects with that, and what has not been cancelled stays. Defaults to none.
   */
  readonly onKeys?: (keys: readonly string[]) => unknown;
}

/** The outcome of `cancelWhere`. */
// An alias, not an interface: users cannot name it, so their declarations write it out.
export type CancelWhereResult = {
  /** How many messages were cancelled, or would be. */
  readonly count: number;
  /** Their keys, in no particular order, but for those behind the first {@link MOST_KEYS}: `onKeys` is told of all. */
  readonly keys: readonly string[];
};

/** Keys that `cancelWhere` returns at most: a queue may have millions. */
export const MOST_KEYS = 1000;
