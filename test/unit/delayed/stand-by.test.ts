import { expect, test } from "vitest";
import { StandBy } from "../../../src/delayed/transfer/stand-by.ts";
import { transferReply } from "../../helpers/transfer-task.ts";

/** Moves a message each 10 ms for a minute; returns when the claims were made. */
function moveFor(standBy: StandBy, from: number, to: number): number[] {
  const claims: number[] = [];
  for (let now = from; now < to; now += 10) {
    if (standBy.claimAt(now, false) > 0) {
      claims.push(now);
      standBy.onClaimed(now);
    }
    standBy.onTransferred(transferReply({ moved: 1 }), now);
  }
  return claims;
}

test("a task that moves alone claims ever more rarely, and at least every five seconds", () => {
  const claims = moveFor(new StandBy(), 0, 60_000);
  const gaps = claims.slice(1).map((at, i) => at - (claims[i] ?? NaN));
  expect(gaps.slice(0, 3)).toEqual([210, 410, 810]);
  expect(Math.max(...gaps)).toBe(5010);
  expect(claims.length).toBeLessThan(20);
});

test("once another task seems to move messages, it claims as often as at first", () => {
  const standBy = new StandBy();
  moveFor(standBy, 0, 60_000);
  standBy.onTransferred(transferReply({}), 900);
  expect(standBy.isOn).toBe(false);
  const claims = moveFor(standBy, 60_000, 61_000);
  expect(claims).toEqual([60_000, 60_210, 60_620]);
});

test("a task whose message another one has moved stands by, and claims when it moves one itself", () => {
  const standBy = new StandBy();
  moveFor(standBy, 0, 1000);
  standBy.onTransferred(transferReply({ isOutrun: true }), 900);
  expect(standBy.isOn).toBe(true);
  expect(standBy.claimAt(1000, false)).toBe(1);
  standBy.onTransferred(transferReply({ moved: 1 }), 900);
  expect(standBy.isOn).toBe(false);
});

test("the first claim, and that of a sweep, check that messages may be moved", () => {
  const standBy = new StandBy();
  expect(standBy.claimAt(0, false)).toBe(1);
  standBy.onClaimed(0);
  expect([100, 300].map((now) => standBy.claimAt(now, false))).toEqual([0, 2]);
  expect(standBy.claimAt(100, true)).toBe(1);
});

test("nobody is outrun by a message that is not due yet, or that the reply announces", () => {
  const standBy = new StandBy();
  standBy.onTransferred(transferReply({ isOutrun: true }), 1001);
  expect(standBy.isOn).toBe(false);
  standBy.onTransferred(transferReply({ isOutrun: true, next: 900 }), 900);
  expect(standBy.isOn).toBe(false);
});
