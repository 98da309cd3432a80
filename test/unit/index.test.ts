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
      "ClosedError",
      "DecodeError",
      "Delayline",
      "DelaylineError",
      "EncodeError",
      "HandlerError",
      "LeftRunningError",
      "OfferError",
      "OfferManyError",
      "PayloadTooLargeError",
      "QuarantineError",
      "RedisError",
      "RejectError",
      "RevokedError",
      "ScheduleError",
      "TimeLimitError",
      "WrongHandleError",
      "defineQueue",
      "nextWithin",
    ],
    types: [
      "AckOptions",
      "AnyDelaylineError",
      "BatchHandler",
      "BlockingQueue",
      "CallOptions",
      "CancelOptions",
      "CloseOptions",
      "Codec",
      "CodecName",
      "DeadLetter",
      "DeadLetterFilter",
      "DeadLetters",
      "DeclareResult",
      "DefineQueueOptions",
      "DelayedMessage",
      "DelayedQueue",
      "DelaylineOptions",
      "Delivery",
      "ErrorCode",
      "Exchanged",
      "FailedAttempt",
      "FindOptions",
      "Flow",
      "FlowOptions",
      "FlowPreview",
      "FlowState",
      "HandledMessage",
      "InsertionOrder",
      "InstantLike",
      "Lane",
      "LaneState",
      "MessageHeaders",
      "MessageId",
      "NewMessage",
      "NextWithinOptions",
      "OfferOptions",
      "OfferResult",
      "OnlyIf",
      "OpenQueueOptions",
      "PartitionInfo",
      "PayloadOf",
      "PinnedLane",
      "PlainHandler",
      "PlainQueue",
      "Quarantine",
      "QueueCounters",
      "QueueDefinition",
      "QueueForecast",
      "QueueNumbers",
      "QueueOptions",
      "QueueStats",
      "Rate",
      "RedisConnectionOptions",
      "RedriveOptions",
      "ReliableHandler",
      "ReliableQueue",
      "ReliableQueueOptions",
      "RetryOptions",
      "RevokeOptions",
      "Revoked",
      "RoutedSubscription",
      "RunningMessage",
      "Schedule",
      "ScheduleCalendar",
      "ScheduleOptions",
      "ScheduleResult",
      "ScheduleTick",
      "Schedules",
      "Stage",
      "SubscribeOptions",
      "Subscription",
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

function namesOf(exported: readonly Exported[], areTypes: boolean): string[] {
  return exported
    .filter(({ isType }) => isType === areTypes)
    .map(({ name }) => name)
    .toSorted();
}

function isDocumented({ name, file }: Exported): boolean {
  const words = "(?:declare |abstract |async )*(?:interface|type|class|const|function)";
  return new RegExp(`\\*/\\nexport ${words} ${name}\\b`).test(readFileSync(file, "utf8"));
}

describe.each(Object.keys(ENTRIES))("%s", (entry) => {
  const exported = exportsOf(entry);

  test("exports these names, and no others", () => {
    const names = { values: namesOf(exported, false), types: namesOf(exported, true) };
    expect(names).toEqual(NAMES[entry]);
  });

  test("has a docstring for each, from which the reference is made", () => {
    expect(exported.length).toBeGreaterThan(0);
    expect(exported.filter((one) => !isDocumented(one))).toEqual([]);
  });
});

test("what is read here is what a program gets", () => {
  expect(Object.keys(delayline).toSorted()).toEqual(NAMES["index"]?.values);
});
