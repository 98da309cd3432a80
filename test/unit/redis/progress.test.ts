import type { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Progress } from "../../../src/redis/progress.ts";

const MB = 1_000_000;

/** What {@link Progress} sees of a connection. */
let stream: {
  bytesRead: number;
  bytesWritten: number;
  writableLength: number;
  writableCorked: number;
};
/** The commands that wait for their replies. */
let queue: object[];
let progress: Progress;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
  stream = { bytesRead: 0, bytesWritten: 0, writableLength: 0, writableCorked: 0 };
  queue = [];
  const commandQueue = { peekAt: (i: number) => queue[i], length: 0 };
  Object.defineProperty(commandQueue, "length", { get: () => queue.length });
  const connection = Object.defineProperty({ commandQueue }, "stream", { get: () => stream });
  progress = Progress.of(connection as unknown as Redis);
  progress.look();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Sends a command of so many bytes, of which `queued` wait for the kernel. */
function send(bytes: number, queued = 0): void {
  queue.push({});
  stream.bytesWritten += bytes;
  stream.writableLength = queued;
}

/** Lets seconds pass, with a look after each, and something that happens in it. */
function pass(seconds: number, happens: () => void = () => {}): void {
  for (let i = 0; i < seconds; i++) {
    happens();
    vi.advanceTimersByTime(1000);
    progress.look();
  }
}

/** After how many seconds it stands still, if nothing moves any more. */
function secondsToStill(): number {
  for (let seconds = 0; seconds <= 600; seconds++) {
    if (progress.hasStoodStill(1900)) return seconds;
    pass(1);
  }
  return Infinity;
}

test("without a byte it stands still after the duration", () => {
  send(100);
  expect(secondsToStill()).toBe(2);
});

test("while bytes are read it moves, however long the reply takes", () => {
  send(100);
  pass(300, () => (stream.bytesRead += 10_000));
  expect(progress.hasStoodStill(1900)).toBe(false);
  expect(secondsToStill()).toBe(2);
});

test("while nothing is awaited it never stands still, and a wait begins anew", () => {
  pass(100);
  expect(progress.hasStoodStill(1900)).toBe(false);
  send(100);
  expect(secondsToStill()).toBe(2);
});

test("what the kernel takes at once says nothing of the other end", () => {
  send(100);
  pass(3, () => send(100));
  expect(progress.hasStoodStill(1900)).toBe(true);
});

test("what the kernel takes after a wait shows that the other end takes something", () => {
  send(100, 20 * MB);
  stream.bytesWritten += 20 * MB;
  pass(100, () => (stream.writableLength -= 100_000));
  expect(progress.hasStoodStill(1900)).toBe(false);
});

test("so does not what waits in a corked socket", () => {
  stream.writableCorked = 1;
  send(100, 100);
  progress.look();
  stream.writableCorked = 0;
  stream.writableLength = 0;
  pass(2);
  expect(progress.hasStoodStill(1900)).toBe(true);
});

describe("patience", () => {
  test("grows with the bytes that are not answered", () => {
    send(MB);
    // At 64 kB a second.
    expect(secondsToStill()).toBeCloseTo(15.6 + 1.9, -0.5);
  });

  test("is not more than a minute", () => {
    send(100 * MB);
    expect(secondsToStill()).toBe(60);
  });

  test("shrinks with each answer", () => {
    send(10 * MB);
    pass(1);
    send(100);
    queue.shift();
    stream.bytesRead += 10;
    pass(1);
    expect(secondsToStill()).toBe(2);
  });
});

describe("a reply that trickles", () => {
  test("stands still after a minute or so", () => {
    send(100);
    let seconds = 0;
    while (!progress.hasStoodStill(1900) && seconds++ < 600) pass(1, () => (stream.bytesRead += 5));
    expect(seconds).toBe(61);
  });

  test("does not, at a kilobyte a second or more", () => {
    send(100);
    pass(3600, () => (stream.bytesRead += 1000));
    expect(progress.hasStoodStill(1900)).toBe(false);
  });

  test("is another matter than many small replies", () => {
    send(100);
    pass(3600, () => {
      send(100);
      queue.shift();
      stream.bytesRead += 5;
    });
    expect(progress.hasStoodStill(1900)).toBe(false);
  });

  test("is not what begins after a long block", () => {
    send(100);
    vi.advanceTimersByTime(3_600_000);
    stream.bytesRead += 100;
    expect(progress.hasStoodStill(1900)).toBe(false);
    pass(10, () => (stream.bytesRead += 100));
    expect(progress.hasStoodStill(1900)).toBe(false);
  });
});

test("another socket has a progress of its own: its handshake is none", () => {
  send(100);
  pass(1);
  stream = { bytesRead: 5000, bytesWritten: 500, writableLength: 0, writableCorked: 0 };
  progress.look();
  expect(secondsToStill()).toBe(2);
});
