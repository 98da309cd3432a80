import type { MessageId } from "../queue/message.ts";
import type { OfferOptions } from "./offer-options.ts";

/** A message that is still delayed. */
export interface DelayedMessage<T> {
  readonly id: MessageId;
  /** Epoch milliseconds on the Redis server's clock. */
  readonly deadline: number;
  readonly payload: T;
  /** The business key, if it was offered with one. */
  readonly key: string | undefined;
}

/** What `cancelWhere` found. */
export interface CancelWhereResult {
  /** How many messages were cancelled, or would be. */
  readonly count: number;
  /** Their keys, in no order. */
  readonly keys: readonly string[];
}

/** One message of `offerMany`. */
export interface NewMessage<T> extends OfferOptions {
  readonly payload: T;
  /** Milliseconds from now; fractions are legal. */
  readonly delay: number;
}
