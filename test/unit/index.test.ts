import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { ENTRIES } from "../../scripts/build/entries.ts";
import * as delayline from "../../src/index.ts";

/**
 * The public names of each entry: what exists when a program runs, and what is a type alone. A name is here because users
 * write it in their own code; what only appears in the type of something else stays inside.
 */
const NAMES: Readonly<Record<string, { values: readonly string[]; types: readonly string[] }>> = {
  index: {
    values: [
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
    ],
    types: [
      "AnyDelaylineError",
      "BackfillOptions",
      "Backoff",
      "BatchHandler",
      "BatchSubscribeOptions",
      "Calendar",
      "CallOptions",
      "CancelWhereOptions",
      "CancelWhereResult",
      "ChangeProgress",
      "CloseOptions",
      "Codec",
      "CodecName",
      "ConnectionOptions",
      "DeadLetter",
      "DeadLetters",
      "DeclareOptions",
      "Declared",
      "DefineQueueOptions",
      "DelayedMessage",
      "DelaylineOptions",
      "Effect",
      "ErrorCode",
      "FailedAttempt",
      "FindOptions",
      "Forecast",
      "ForecastOptions",
      "FromQueue",
      "GroupOptions",
      "Guard",
      "HandledMessage",
      "Handler",
      "HandlerContext",
      "InsertionOrder",
      "Instant",
      "LentClient",
      "LocalTime",
      "MessageHeaders",
      "MessageId",
      "Misfire",
      "NackOptions",
      "NewMessage",
      "OfferOptions",
      "OfferResult",
      "OnHandlerError",
      "OnRestore",
      "OpenOptions",
      "Outcome",
      "Overlap",
      "PartitionInfo",
      "PartitionStats",
      "PauseOptions",
      "PayloadOf",
      "PlainResult",
      "Quarantine",
      "QueueCounters",
      "QueueDefinition",
      "QueueNumbers",
      "QueueOptions",
      "QueueStats",
      "RedisAddress",
      "RedriveOptions",
      "ReliableHandler",
      "ReliableNewMessage",
      "ReliableOfferOptions",
      "ReliableQueueOptions",
      "ReliableSubscribeOptions",
      "Rescheduled",
      "RetryOptions",
      "RouteOptions",
      "Schedule",
      "ScheduleOptions",
      "ScheduleResult",
      "Schedules",
      "SetPartitionsOptions",
      "Span",
      "Stored",
      "SubscribeOptions",
      "TakeManyOptions",
      "TakeOptions",
      "Tick",
      "Weekday",
      "WithinOptions",
    ],
  },
  events: {
    values: [],
    types: [
      "DelaylineEvents",
      "DeliveredMessage",
      "DroppedEvent",
      "HandleEvent",
      "OfferEvent",
      "RecoveredEvent",
      "RestoredEvent",
      "ScriptEvent",
      "SettleEvent",
      "TakeEvent",
      "TransferEvent",
    ],
  },
  redisson: {
    values: ["JavaValue", "JsonJacksonCodec", "Kryo5Codec", "LongCodec", "MsgPackJacksonCodec"],
    types: ["JacksonOptions", "KryoScalar"],
  },
  testing: {
    values: ["RedisStartError", "startRedis", "testClock"],
    types: [
      "Duration",
      "FakeTimers",
      "RedisServer",
      "RedisStartErrorCode",
      "StartRedisOptions",
      "TestClock",
      "TestClockOptions",
    ],
  },
  dashboard: {
    values: ["dashboard", "nodeHandler", "serveDashboard"],
    types: ["Dashboard", "DashboardOptions", "ServeOptions", "ServedDashboard"],
  },
  nestjs: {
    values: [
      "DelaylineHealthIndicator",
      "DelaylineModule",
      "InjectDelayline",
      "InjectDelaylineHealth",
      "InjectQueue",
      "getDelaylineHealthToken",
      "getDelaylineToken",
      "getQueueToken",
    ],
    types: [
      "DelaylineHealth",
      "DelaylineModuleAsyncOptions",
      "DelaylineModuleOptions",
      "HealthCheckOptions",
      "QueueChoice",
      "QueueKind",
      "QueueRegistration",
    ],
  },
  opentelemetry: {
    values: ["instrument"],
    types: ["InstrumentOptions", "Instrumented", "ObservedQueue"],
  },
  prometheus: {
    values: ["collectMetrics"],
    types: ["CollectMetricsOptions", "MetricsCollection", "MetricsRegistry"],
  },
};

const src = fileURLToPath(new URL("../../src/", import.meta.url));

interface Exported {
  readonly name: string;
  readonly isType: boolean;
  /** The file that declares it. */
  readonly file: string;
}

function exportsOf(entry: string): Exported[] {
  const path = join(src, ENTRIES[entry] as string);
  const source = readFileSync(path, "utf8");
  const lists = source.matchAll(/^export (type )?\{(.*?)\} from "(.*?)";$/gms);
  return Array.from(lists).flatMap(([, areTypes, names = "", from = ""]) =>
    names
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "")
      .map((name) => ({
        name: name.replace(/^type /, ""),
        isType: areTypes !== undefined || name.startsWith("type "),
        file: join(dirname(path), from),
      })),
  );
}

describe.each(Object.keys(ENTRIES))("%s", (entry) => {
  const exported = exportsOf(entry);

  test("exports these names, and no others", () => {
    const named = (areTypes: boolean) =>
      exported.filter(({ isType }) => isType === areTypes).map(({ name }) => name);
    expect({ values: named(false).toSorted(), types: named(true).toSorted() }).toEqual(
      NAMES[entry],
    );
  });

  test("has a docstring for each, from which the reference is made", () => {
    const isDocumented = ({ name, file }: Exported) =>
      new RegExp(
        `\\*/\\nexport (?:declare |abstract |async )*(?:interface|type|class|const|function) ${name}\\b`,
      ).test(readFileSync(file, "utf8"));
    expect(exported.length).toBeGreaterThan(0);
    expect(exported.filter((one) => !isDocumented(one)).map(({ name }) => name)).toEqual([]);
  });
});

test("what is read here is what a program gets", () => {
  expect(Object.keys(delayline).toSorted()).toEqual(NAMES["index"]?.values);
});
