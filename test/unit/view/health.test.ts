import { describe, expect, test } from "vitest";
import { isOverdue, LAWS, problemsOf, type Judged } from "../../../src/tools/view/health.ts";

/** A reliable queue that is well: one message has been due for a moment. */
const calm: Judged = {
  isPaused: false,
  serverTime: 1_000_000,
  delayed: 5,
  overdue: 1,
  waiting: 0,
  ready: 0,
  retries: 0,
  dead: 0,
  quarantined: 0,
  unplanned: 0,
  nextDeadline: 999_990,
  oldestReadyAge: undefined,
  oldestInFlightAge: undefined,
  consumers: 1,
  listeners: 1,
};
const late = { nextDeadline: 900_000 };
const waiting = { ready: 2, oldestReadyAge: 400_000 };

test.each<[string, Partial<Judged>, string[]]>([
  ["nothing", {}, []],
  ["what Redis does not say", { listeners: undefined, consumers: undefined }, []],
  ["late messages", late, ["overdue"]],
  ["late messages that wait for their turn", { ...late, overdue: 0, waiting: 5 }, []],
  ["some that do, and late ones", { ...late, overdue: 2, waiting: 5 }, ["overdue"]],
  ["nobody who moves messages", { listeners: 0 }, ["no-transfer"]],
  ["nobody who moves retries", { listeners: 0, delayed: 0, retries: 1 }, ["no-transfer"]],
  ["a schedule that nobody plans", { unplanned: 1 }, ["unplanned"]],
  ["the same where nobody moves messages", { unplanned: 1, listeners: 0 }, ["no-transfer"]],
  ["the same in a paused queue", { unplanned: 1, isPaused: true }, ["paused"]],
  ["nobody, and nothing to move", { listeners: 0, delayed: 0 }, []],
  ["late messages because nobody moves them: one problem", { ...late, listeners: 0 }, ["overdue"]],
  ["ready messages", { ready: 2, oldestReadyAge: 299_999 }, []],
  ["ready messages for five minutes", waiting, ["backlog"]],
  ["ready messages and no consumer", { ...waiting, consumers: 0 }, ["no-consumer"]],
  ["a message in flight", { oldestInFlightAge: 299_999 }, []],
  ["a message in flight for five minutes", { oldestInFlightAge: 300_000 }, ["long-in-flight"]],
  [
    "the same in a paused queue: handlers run on",
    { oldestInFlightAge: 300_000, isPaused: true },
    ["paused", "long-in-flight"],
  ],
  ["no consumer, and nothing to take", { consumers: 0 }, []],
  [
    "a pause, which explains what stands still",
    { ...late, ...waiting, isPaused: true },
    ["paused"],
  ],
  ["a pause that nobody would hear", { isPaused: true, listeners: 0 }, ["paused"]],
  [
    "unreadable messages and dead letters",
    { quarantined: 1, dead: 1 },
    ["quarantine", "dead-letters"],
  ],
  [
    "dead letters of a paused queue",
    { isPaused: true, dead: 1, ready: 1, consumers: 0 },
    ["paused", "dead-letters"],
  ],
])("%s", (_, change, expected) => {
  expect(problemsOf({ ...calm, ...change })).toEqual(expected);
});

describe("the laws", () => {
  test("are listed with errors first", () => {
    const levels = Object.values(LAWS).map(({ level }) => level);
    expect(levels).toEqual(levels.toSorted());
  });
});

test("a message is late 5 s after its deadline", () => {
  expect(isOverdue(10_000, 14_999)).toBe(false);
  expect(isOverdue(10_000, 15_000)).toBe(true);
  expect(isOverdue(undefined, 15_000)).toBe(false);
});
