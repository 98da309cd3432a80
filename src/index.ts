export { Delayline, type DelaylineEvents } from "./client/delayline.ts";
export { DelayedQueue } from "./delayed/delayed-queue.ts";
export type { CancelWhereResult, DelayedMessage, NewMessage } from "./delayed/delayed-message.ts";
export type { OfferOptions } from "./delayed/offer-options.ts";
export type { Outcome } from "./lua/delayed/offer-keyed.ts";
export type { OfferResult } from "./delayed/offer-batch.ts";
export type { MessageId } from "./queue/message.ts";
export {
  BlockingQueue,
  type FromQueue,
  type SubscribeOptions,
  type TakeManyOptions,
  type TakeOptions,
} from "./ready/blocking-queue.ts";
export { Subscription, type Handler } from "./queue/subscription.ts";
export type { DelaylineOptions, QueueOptions } from "./queue/options.ts";
export type { Codec } from "./codecs/codec.ts";
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
