import { expect, test } from "vitest";
import type { QueueStats } from "../../../src/index.ts";
import { NO_NUMBERS } from "../../../src/inside.ts";
import { LAWS } from "../../../src/tools/view/health.ts";
import { problemsIn, stateOf } from "../../../src/tools/view/problems.ts";

const NOW = 1_000_000_000;

const CALM: QueueStats = {
  ...NO_NUMBERS,
  kind: "reliable",
  isPaused: false,
  pauseReason: undefined,
  serverTime: NOW,
  delayed: 5,
  consumers: 1,
  listeners: 1,
  perPartition: [],
};

const LATE = { overdue: 3, nextDeadline: NOW - 65_000 };

/** A queue with each problem, and what is said of the problem. */
const CASES: Readonly<
  Record<keyof typeof LAWS, readonly [change: Partial<QueueStats>, text: string]>
> = {
  overdue: [
    { ...LATE, listeners: 0 },
    "3 messages overdue, the oldest by 1 min 5 s: no process transfers them",
  ],
  "no-consumer": [{ ready: 2, consumers: 0 }, "2 messages ready, but no consumers"],
  unplanned: [{ unplanned: 1 }, "1 schedule that no process can plan any more"],
  paused: [
    { ...LATE, isPaused: true, pauseReason: "a migration" },
    "3 messages overdue, the oldest by 1 min 5 s: the queue is paused (a migration)",
  ],
  "no-transfer": [{ listeners: 0 }, "no process will transfer its messages when they become due"],
  backlog: [
    { ready: 1, oldestReadyAge: 600_000 },
    "the oldest ready message has waited for 10 min",
  ],
  "long-in-flight": [
    { inFlight: 1, oldestInFlightAge: 3_600_000 },
    "a message has been in flight for 1 h: its handler hangs, or takes long",
  ],
  quarantine: [{ quarantined: 1200 }, "1,200 unreadable messages in quarantine"],
  "dead-letters": [{ dead: 1 }, "1 dead letter"],
};

test.each(Object.entries(CASES))("%s in words", (name, [change, text]) => {
  const { level } = LAWS[name as keyof typeof LAWS];
  expect(problemsIn({ ...CALM, ...change })).toMatchObject([{ name, level, text }]);
});

test("a queue that is well has no problem, and its state is when its next message is due", () => {
  expect(problemsIn(CALM)).toEqual([]);
  expect(stateOf({ ...CALM, nextDeadline: NOW + 3_660_000 })).toBe("in 1 h 1 min");
  expect(stateOf({ ...CALM, ...LATE })).toBe("overdue by 1 min 5 s");
});
