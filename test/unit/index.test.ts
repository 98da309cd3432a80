import { expect, test } from "vitest";
import * as delayline from "../../src/index.ts";

test("the package exports these names, and no others", () => {
  expect(Object.keys(delayline).toSorted()).toEqual([
    "BlockingQueue",
    "ClosedError",
    "DecodeError",
    "DelayedQueue",
    "Delayline",
    "DelaylineError",
    "Delivery",
    "EncodeError",
    "HandlerError",
    "LeftRunningError",
    "OfferError",
    "OfferManyError",
    "PayloadTooLargeError",
    "PlainQueue",
    "QuarantineError",
    "RedisError",
    "RejectError",
    "ReliableQueue",
    "RoutedSubscription",
    "ScheduleError",
    "Subscription",
    "WrongHandleError",
    "defineQueue",
    "nextWithin",
  ]);
});
