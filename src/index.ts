export { Delayline, type DelaylineEvents } from "./delayline.ts";
export {
  DelayedQueue,
  type CancelWhereResult,
  type DelayedMessage,
  type NewMessage,
} from "./delayed-queue.ts";
export type { OfferOptions } from "./offer-options.ts";
export type { Outcome } from "./lua/offer-keyed.ts";
export type { OfferResult } from "./offer-batch.ts";
export type { MessageId } from "./message.ts";
export {
  BlockingQueue,
  type FromQueue,
  type SubscribeOptions,
  type TakeManyOptions,
  type TakeOptions,
} from "./blocking-queue.ts";
export { Subscription, type Handler } from "./subscription.ts";
export type { DelaylineOptions, QueueOptions } from "./options.ts";
export type { Codec } from "./codec.ts";
export type { CodecName } from "./codecs/built-in.ts";
export {
  ClosedError,
  DecodeError,
  DelaylineError,
  EncodeError,
  HandlerError,
  OfferError,
  OfferManyError,
  PayloadTooLargeError,
  QuarantineError,
  RedisError,
  type ErrorCode,
  type Stored,
} from "./errors.ts";
