import { expect, test } from "vitest";
import { Timeline } from "../../../src/adapters/testing/clock/timeline.ts";
import type { Presence } from "../../../src/time/runtime.ts";

/** Gives a sign of life every ten milliseconds. */
function live(timeline: Timeline, presence: Presence) {
  const signs: number[] = [];
  const arm = () =>
    timeline.setTimeout(
      () => {
        signs.push(timeline.now);
        arm();
      },
      10,
      presence,
      "presence",
    );
  arm();
  return signs;
}

/** Lets time pass until an instant, as the clock does. */
function pass(timeline: Timeline, until: number): void {
  for (;;) {
    const next = timeline.next(until);
    const at = next ?? until;
    timeline.set(at, timeline.presenceRests() ? at - timeline.now : 0);
    while (timeline.fireOne());
    if (next === undefined) return;
  }
}

test("presence rests once its signs were given, and its timers are put off", () => {
  const timeline = new Timeline(0);
  const signs = live(timeline, {});
  pass(timeline, 1000);
  expect(signs).toEqual([10]);
  expect([timeline.now, timeline.presence]).toEqual([1000, 10]);
  timeline.happened();
  pass(timeline, 2000);
  expect(signs).toEqual([10, 1010]);
  expect(timeline.presence).toBe(20);
});

test("a timer of the queue is as punctual as ever, beside those that rest", () => {
  const timeline = new Timeline(0);
  const signs = live(timeline, {});
  const fired: number[] = [];
  timeline.setTimeout(() => fired.push(timeline.now), 505);
  pass(timeline, 1000);
  expect(fired).toEqual([505]);
  expect(signs).toEqual([10]);
});

test.each<{ name: string; presence: Presence }>([
  { name: "needs another that gives no signs here", presence: { needs: () => ["other"] } },
  { name: "is not steady", presence: { isSteady: () => false } },
])("presence does not rest for one that $name", ({ presence }) => {
  const timeline = new Timeline(0);
  const signs = live(timeline, presence);
  const others = live(timeline, { name: "steady" });
  pass(timeline, 50);
  expect(signs).toEqual([10, 20, 30, 40, 50]);
  // The others have to live, too.
  expect(others).toEqual(signs);
  expect(timeline.presence).toBe(50);
});

const needs = () => ["one", "other"];

test("presence rests for two that need each other, until one of them falls silent", () => {
  const timeline = new Timeline(0);
  const signs = live(timeline, { name: "one", needs });
  const isAlive = { other: true };
  const act = () => {
    if (isAlive.other) timeline.setTimeout(act, 10, other, "presence");
  };
  const other = { name: "other", needs };
  act();
  pass(timeline, 500);
  expect(signs).toEqual([10]);
  timeline.happened();
  isAlive.other = false;
  pass(timeline, 540);
  expect(signs).toEqual([10, 510, 520, 530, 540]);
});

test("what waits in presence without a routine is waited for, and so are the signs until then", () => {
  const timeline = new Timeline(0);
  const signs = live(timeline, {});
  const waited: number[] = [];
  timeline.setTimeout(() => waited.push(timeline.now), 25, undefined, "presence");
  pass(timeline, 1000);
  expect(waited).toEqual([25]);
  expect(signs).toEqual([10, 20]);
  expect(timeline.presence).toBe(25);
});
