import { EventEmitter } from "node:events";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { Bypass, type ReplyReader } from "../../../src/redis/bypass.ts";

/** Reads `+` and five letters, in two parts. */
class HelloReader implements ReplyReader {
  text = "";

  get isDone(): boolean {
    return this.text.length === 6;
  }

  read(bytes: Buffer, at: number): number | undefined {
    const size = this.text === "" ? 1 : 5;
    if (bytes.length < at + size) return bytes.length - at - size;
    if (this.text === "" && bytes[at] !== "+".charCodeAt(0)) return undefined;
    this.text += bytes.toString("latin1", at, at + size);
    return at + size;
  }
}

/** A connection whose decoder only notes what it gets. */
function connection({ awaited = 0, listeners = 1 } = {}) {
  const stream = new EventEmitter();
  const decoded: string[] = [];
  for (let i = 0; i < listeners; i++) {
    stream.on("data", (bytes: Buffer) => decoded.push(bytes.toString()));
  }
  const queue = { length: awaited, peekAt: () => undefined };
  const redis = { stream, commandQueue: queue } as unknown as Redis;
  const receive = (...texts: readonly string[]) => {
    for (const text of texts) stream.emit("data", Buffer.from(text));
  };
  return { redis, stream, decoded, queue, receive };
}

/** All ways to cut a text in two, and the one into single bytes. */
function cuts(text: string): string[][] {
  const pairs = Array.from({ length: text.length - 1 }, (_, i) => [
    text.slice(0, i + 1),
    text.slice(i + 1),
  ]);
  return [[text], ...pairs, Array.from(text)];
}

test.each(cuts("+hello"))("of a reply that a reader reads, ioredis gets a null", (...chunks) => {
  const { redis, decoded, receive } = connection();
  const reader = new HelloReader();
  Bypass.before(redis)!.open(reader);
  receive(...chunks);
  expect(reader.text).toBe("+hello");
  expect(decoded).toEqual(["*-1\r\n"]);
});

test("what follows a reply that was read goes to ioredis", () => {
  const { redis, decoded, receive } = connection();
  Bypass.before(redis)!.open(new HelloReader());
  receive("+hel", "lo:1\r", "\n");
  expect(decoded).toEqual(["*-1\r\n", ":1\r", "\n"]);
});

test.each(cuts("-NOGROUP"))("a reply that a reader cannot read goes to ioredis", (...chunks) => {
  const { redis, decoded, receive } = connection();
  const reader = new HelloReader();
  Bypass.before(redis)!.open(reader);
  receive(...chunks);
  expect(decoded).toEqual(chunks);
});

test("a reply that a reader has begun to read, and cannot, goes to ioredis from its first byte on", () => {
  const { redis, decoded, receive } = connection();
  let count = 0;
  const reader: ReplyReader = {
    isDone: false,
    read: (bytes, at) => {
      if (bytes.length === at) return -1;
      count++;
      return count < 3 ? at + 1 : undefined;
    },
  };
  Bypass.before(redis)!.open(reader);
  receive("a", "b", "cd", "e");
  expect(decoded).toEqual(["a", "b", "cd", "e"]);
});

test("each reader reads one reply", () => {
  const { redis, decoded, receive } = connection();
  const bypass = Bypass.before(redis)!;
  for (const text of ["one", "two"]) {
    const reader = new HelloReader();
    bypass.open(reader);
    receive("+hello", text);
    expect(reader.text).toBe("+hello");
  }
  expect(decoded).toEqual(["*-1\r\n", "one", "*-1\r\n", "two"]);
});

test("while ioredis awaits another reply, a reader gets none", () => {
  const { redis, decoded, receive } = connection({ awaited: 1 });
  Bypass.before(redis)!.open(new HelloReader());
  receive("+hello");
  expect(decoded).toEqual(["+hello"]);
});

test.each([0, 2])("a socket that %j listeners read is left alone", (listeners) => {
  const { redis, stream } = connection({ listeners });
  const before = stream.listeners("data");
  expect(Bypass.before(redis)).toBeUndefined();
  expect(stream.listeners("data")).toEqual(before);
});

test("a client that hides the commands it awaits reads all itself", () => {
  const { redis, decoded, receive } = connection();
  delete (redis as { commandQueue?: unknown }).commandQueue;
  Bypass.before(redis)!.open(new HelloReader());
  receive("+hello");
  expect(decoded).toEqual(["+hello"]);
});
