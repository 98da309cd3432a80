import { beforeEach, describe, expect, test } from "vitest";
import { PopRhythm } from "../../../src/ready/pop-rhythm.ts";

let rhythm: PopRhythm;

beforeEach(() => {
  rhythm = new PopRhythm(true);
});

const BLOCK = { pop: 0, isBlocking: true };

/** Sends the next step for these waiters; Redis has `messages`, which it gives to the pop first. */
function send(wanted: number[], messages: number) {
  const step = rhythm.next(wanted);
  const popped = Math.min(step.pop, messages);
  if (step.pop > 0) rhythm.onPop(step, popped);
  if (step.isBlocking) rhythm.onBlock(Math.min(1, messages - popped));
  return step;
}

/** How many blocking calls get a message before the next pop is sent. */
function blocksUntilPop(): number {
  for (let blocks = 0; ; blocks++) {
    if (rhythm.next([1, 1]).pop > 0) return blocks;
    send([1, 1], 1);
  }
}

/** Sends a pop and a blocking call. The pop finds nothing, and the blocking call gets a message. */
function popInVain() {
  const step = rhythm.next([1, 1]);
  expect(step).toEqual({ pop: 1, isBlocking: true });
  rhythm.onPop(step, 0);
  rhythm.onBlock(1);
}

describe("the first step", () => {
  test.each([
    ["one takes one: a block brings all of it", [1], BLOCK],
    ["one takes many: a pop", [10], { pop: 10, isBlocking: false }],
    ["several: the last is left to the block", [1, 1, 1], { pop: 2, isBlocking: true }],
    ["several: a pop takes all that the others want", [5, 1, 3, 7], { pop: 9, isBlocking: true }],
  ])("%s", (_, wanted, step) => {
    expect(rhythm.next(wanted)).toEqual(step);
  });

  test.each([[[1]], [[10]], [[1, 1, 1]]])("with several LISTs is a block: %j", (wanted) => {
    rhythm = new PopRhythm(false);
    expect(rhythm.next(wanted)).toEqual(BLOCK);
    rhythm.restart();
    expect(rhythm.next(wanted)).toEqual(BLOCK);
  });
});

describe("one who takes many", () => {
  test("pops again after a full pop", () => {
    expect(send([10], 10)).toMatchObject({ pop: 10 });
    expect(send([10], 3)).toMatchObject({ pop: 10 });
    expect(send([10], 0)).toEqual(BLOCK);
  });

  test("pops again after a block that brought a message", () => {
    send([10], 0);
    expect(send([10], 1)).toEqual(BLOCK);
    expect(rhythm.next([10])).toMatchObject({ pop: 10 });
  });

  test("blocks again after a block that timed out", () => {
    send([10], 0);
    expect(send([10], 0)).toEqual(BLOCK);
    expect(rhythm.next([10])).toEqual(BLOCK);
  });
});

test("the first waiter gets a pop, whatever the last block returned", () => {
  send([1], 0);
  expect(rhythm.next([10])).toEqual(BLOCK);
  rhythm.restart();
  expect(rhythm.next([10])).toMatchObject({ pop: 10 });
});

describe("several waiters", () => {
  test("are popped for with each block while both bring messages", () => {
    for (let i = 0; i < 5; i++) expect(send([1, 1], 2)).toEqual({ pop: 1, isBlocking: true });
  });

  test("after pops in vain ever more messages come by blocks alone, up to 15", () => {
    const blocks = Array.from({ length: 6 }, () => {
      popInVain();
      // The blocking call that was sent with the pop is the first.
      return 1 + blocksUntilPop();
    });
    expect(blocks).toEqual([2, 4, 8, 16, 16, 16]);
  });

  test("a pop that brings a message ends that", () => {
    popInVain();
    blocksUntilPop();
    popInVain();
    blocksUntilPop();
    send([1, 1], 2);
    expect(blocksUntilPop()).toBe(0);
    popInVain();
    expect(1 + blocksUntilPop()).toBe(2);
  });

  test("blocks that time out do not count", () => {
    popInVain();
    for (let i = 0; i < 20; i++) {
      rhythm.onBlock(0);
      expect(rhythm.next([1, 1])).toEqual(BLOCK);
    }
    rhythm.onBlock(1);
    expect(rhythm.next([1, 1])).toMatchObject({ pop: 1 });
  });

  test("the count goes on when a new first waiter comes", () => {
    popInVain();
    blocksUntilPop();
    popInVain();
    rhythm.restart();
    expect(rhythm.next([1, 1])).toMatchObject({ pop: 1 });
    popInVain();
    expect(1 + blocksUntilPop()).toBe(8);
  });
});

test("sparing: after an empty pop a waiter that takes many is left to blocks, too, even when it comes again", () => {
  rhythm = new PopRhythm(true, true);
  const blocks = Array.from({ length: 5 }, () => {
    expect(send([10], 0).pop).toBe(10);
    for (let count = 0; ; count++) {
      rhythm.restart();
      if (rhythm.next([10]).pop > 0) return count;
      send([10], 1);
    }
  });
  expect(blocks).toEqual([1, 3, 7, 15, 15]);
  send([10], 10);
  expect(send([10], 10).pop).toBe(10);
});
