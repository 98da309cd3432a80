import type { NewMessage } from "./delayed-message.ts";
import type { OfferOptions } from "./offer-options.ts";
import type { MessageHeaders } from "../queue/message/headers.ts";

/** Options of one offer to a reliable queue. */
export interface ReliableOfferOptions extends OfferOptions {
  /**
   * Carried with the message, beside its payload, such as `{ traceparent: "..." }`. Each delivery has them. 64 headers
   * at most; names of 1 to 200 bytes; 8 KiB altogether.
   *
   * Costs their bytes in Redis, and seven more for each. Defaults to none.
   */
  readonly headers?: MessageHeaders;
}

/** One message for `offerMany` of a reliable queue. */
export type ReliableNewMessage<T> = NewMessage<T> & Pick<ReliableOfferOptions, "headers">;
