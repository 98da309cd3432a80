import { expect, test } from "vitest";
import { unpackRetry, unpackRetryName } from "../../../src/lua/places/retries.ts";

/** A stored retry: attempts, length of the payload, payload, trailer. */
function pack(attempts: number, length: number, rest: string): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(attempts, 0);
  head.writeUInt32LE(length, 4);
  return Buffer.concat([head, Buffer.from(rest)]);
}

test("the value of a retry holds attempts, payload and trailer", () => {
  expect(unpackRetry(pack(3, 7, "payloadtrailer"))).toEqual({
    attempts: 3,
    payload: Buffer.from("payload"),
    trailer: Buffer.from("trailer"),
  });
  expect(unpackRetry(pack(2 ** 32 - 1, 0, ""))).toEqual({
    attempts: 2 ** 32 - 1,
    payload: Buffer.alloc(0),
    trailer: Buffer.alloc(0),
  });
});

test.each([
  ["nothing", Buffer.alloc(0)],
  ["half a head", Buffer.alloc(7)],
  ["a payload that is cut off", pack(1, 8, "payload")],
  ["a length beyond all", pack(1, 2 ** 32 - 1, "payload")],
])("a malformed value: %s", (_, value) => {
  expect(unpackRetry(value)).toBeUndefined();
});

const name = (length: number, rest: string) =>
  unpackRetryName(Buffer.concat([Buffer.of(length), Buffer.from(rest)]));

test("the name of a retry holds the address and the group", () => {
  expect(name(4, "addrgroup")).toEqual({ address: Buffer.from("addr"), group: "group" });
  expect(name(4, "addrgrüp")).toEqual({ address: Buffer.from("addr"), group: "grüp" });
  expect(name(4, "addr")).toEqual({ address: Buffer.from("addr"), group: "" });
  expect(name(0, "g")).toEqual({ address: Buffer.alloc(0), group: "g" });
  expect(name(5, "addr")).toBeUndefined();
  expect(unpackRetryName(Buffer.alloc(0))).toBeUndefined();
});
