/**
 * `delayline`: the client, its queues, and the errors.
 *
 * @module delayline
 */
export { Delayline } from "./client/delayline.ts";
export type { CancelOptions } from "./handles/delayed-handle.ts";
export type { DelayedQueue } from "./handles/delayed-queue.ts";
export type { PlainQueue } from "./handles/plain-queue.ts";
export {
  defineQueue,
  type DefineQueueOptions,
  type OpenQueueOptions,
  type PayloadOf,
  type QueueDefinition,
} from "./handles/queue-definition.ts";
export type { InsertionOrder } from "./handles/insertion-order.ts";
export type { DelayedMessage } from "./handles/delayed-message.ts";
export type { NewMessage, OfferOptions } from "./queue/new-message.ts";
export type { OfferResult } from "./queue/offering.ts";
export type { Exchanged } from "./delayed/exchanges.ts";
export type { Quarantine } from "./handles/quarantine.ts";
export { nextWithin, type NextWithinOptions } from "./handles/next-within.ts";
export type { Flow, FlowPreview, FlowState, LaneState } from "./handles/flow.ts";
export type { FlowOptions, Lane, PinnedLane, Rate } from "./queue/flow.ts";
export type { QueueForecast } from "./handles/forecast.ts";
export type { QueueNumbers } from "./nouns/numbers.ts";
export type { QueueStats } from "./observe/queue-stats.ts";
export type { DeclareResult, Schedule, ScheduleResult, Schedules } from "./handles/schedules.ts";
export type { ScheduleOptions, ScheduleTick } from "./handles/schedule-options.ts";
export type { ScheduleCalendar } from "./schedules/calendar.ts";
export type { OnlyIf } from "./queue/message/only-if.ts";
export type { QueueCounters } from "./observe/counters.ts";
export type { InstantLike } from "./queue/instant.ts";
export type { MessageId } from "./queue/message/message.ts";
export type { BlockingQueue } from "./handles/blocking-queue.ts";
export type { SubscribeOptions } from "./queue/consuming/take-options.ts";
export type { ReliableQueue } from "./handles/reliable-queue.ts";
export type { ReliableQueueOptions } from "./handles/reliable-options.ts";
export type { RetryOptions } from "./reliable/consuming/retry-ladder.ts";
export type { AckOptions, Delivery } from "./reliable/consuming/delivery.ts";
export {
  RejectError,
  type BatchHandler,
  type ReliableHandler,
} from "./reliable/consuming/handling.ts";
export type { RoutedSubscription } from "./reliable/consuming/routed-subscription.ts";
export type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetters,
  RedriveOptions,
} from "./handles/dead-letters.ts";
export type { Revoked, RevokeOptions, RunningMessage, Stage } from "./handles/revoked.ts";
export type { HandledMessage } from "./handles/handled-message.ts";
export type { FailedAttempt } from "./queue/message/failed-attempt.ts";
export type { MessageHeaders } from "./queue/message/headers.ts";
export type { CloseOptions } from "./queue/consuming/consumer.ts";
export type { Subscription } from "./queue/consuming/subscription.ts";
export type { PlainHandler } from "./queue/consuming/handler.ts";

export type { CallOptions, FindOptions } from "./queue/call.ts";
export type { DelaylineOptions, QueueOptions } from "./queue/options.ts";
export type { PartitionInfo } from "./partitions/partition-info.ts";
export type { RedisConnectionOptions } from "./redis/address.ts";
export type { Codec } from "./codecs/codec.ts";
export type { CodecName } from "./codecs/built-in.ts";
export {
  ClosedError,
  DecodeError,
  DelaylineError,
  EncodeError,
  HandlerError,
  LeftRunningError,
  OfferError,
  OfferManyError,
  PayloadTooLargeError,
  QuarantineError,
  RedisError,
  RevokedError,
  ScheduleError,
  TimeLimitError,
  WrongHandleError,
  type AnyDelaylineError,
  type ErrorCode,
} from "./errors.ts";
