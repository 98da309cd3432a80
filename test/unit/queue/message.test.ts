import { describe, expect, test } from "vitest";
import {
  ADDRESS_BYTES,
  createId,
  formatMessageId,
  isMessageId,
  messageIdAt,
  packAddress,
  packMember,
  parseMessageId,
  unpackMember,
} from "../../../src/queue/message/message.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

describe("packing", () => {
  test("makes the same bytes as Redis's struct.pack", () => {
    const member = packMember(hex("0102030405060708"), Buffer.from("abc"));
    expect(member).toEqual(hex("08 0102030405060708 0300000000000000 616263"));
  });

  test.each([0, 1, 255, 256, 65_536])("writes a length of %d in eight bytes", (length) => {
    const member = packMember(Buffer.alloc(16, 7), Buffer.alloc(length, 1));
    expect(member.length).toBe(25 + length);
    expect(member.readBigUInt64LE(17)).toBe(BigInt(length));
  });

  test("shares no memory with the buffers that it is given", () => {
    const id = Buffer.alloc(16, 1);
    const payload = Buffer.from("payload");
    const member = packMember(id, payload);
    id.fill(0);
    payload.fill(0);
    expect(unpackMember(member)).toEqual({
      id: Buffer.alloc(16, 1),
      payload: Buffer.from("payload"),
    });
  });
});

describe("unpacking", () => {
  test.each([0, 1, 8, 16, 17, 255])("reads an id of %d bytes", (length) => {
    const id = Buffer.alloc(length, 0xab);
    const payload = Buffer.from("payload");
    expect(unpackMember(packMember(id, payload))).toEqual({ id, payload });
  });

  test("reads an empty payload", () => {
    const id = Buffer.alloc(16, 3);
    expect(unpackMember(packMember(id, Buffer.alloc(0)))).toEqual({ id, payload: Buffer.alloc(0) });
  });

  test("ignores the bytes after the payload", () => {
    const id = Buffer.alloc(16, 3);
    const member = packMember(id, Buffer.from("abc"));
    const longer = Buffer.concat([member, Buffer.from("order:42")]);
    expect(unpackMember(longer)).toEqual({ id, payload: Buffer.from("abc"), key: "order:42" });
  });

  test.each(["order:42", "é😀", "k", "x".repeat(200)])(
    "reads the key after the payload: %s",
    (key) => {
      const id = Buffer.alloc(16, 3);
      for (const payload of [Buffer.from("abc"), Buffer.alloc(0)]) {
        const member = packMember(id, payload, key);
        expect(member.length).toBe(25 + payload.length + Buffer.byteLength(key));
        expect(unpackMember(member)).toEqual({ id, payload, key });
      }
    },
  );

  test("finds no key if there is none", () => {
    const id = Buffer.alloc(16, 3);
    expect(packMember(id, Buffer.from("abc"), "")).toEqual(packMember(id, Buffer.from("abc")));
    expect(unpackMember(packMember(id, Buffer.from("abc")))?.key).toBeUndefined();
  });

  test.each([
    // A double from Lua's math.random, its bytes reversed; the first byte decides what the
    // new layout would make of it.
    ["a first byte that no id length fits", "3f e5 2b 6b 1c a9 d0 00", "abc"],
    ["a first byte of 0", "00 00 00 00 00 00 f0 3f", "abc"],
    ["a first byte of 16", "10 11 12 13 14 15 16 17", "a payload that is long enough for both"],
    ["no payload", "9a 99 99 99 99 99 b9 3f", ""],
  ])("reads the layout before Redisson 3.21.1: %s", (_, random, text) => {
    const length = Buffer.alloc(8);
    length.writeUInt8(text.length, 0);
    const member = Buffer.concat([hex(random), length, Buffer.from(text)]);
    expect(unpackMember(member)).toEqual({ id: hex(random), payload: Buffer.from(text) });
  });

  test("prefers today's layout where both fit exactly", () => {
    // An id that ends in 1, and no payload: read as the old layout, the length would be 1.
    const member = hex("08 0102030405060701 0000000000000000");
    expect(member.readBigUInt64LE(8)).toBe(BigInt(member.length - 16));
    expect(unpackMember(member)).toEqual({
      id: hex("0102030405060701"),
      payload: Buffer.alloc(0),
    });
  });

  test("uses the old layout where only that one fits exactly", () => {
    // Read as today's layout: an id of 16 bytes, then a payload of two, then four more bytes.
    const payload = hex("aa 0200000000000000 61626364 6566");
    const member = Buffer.concat([hex("10 11121314151617"), hex("0f00000000000000"), payload]);
    expect(member.readBigUInt64LE(17)).toBe(2n);
    expect(unpackMember(member)).toEqual({ id: hex("1011121314151617"), payload });
  });

  test.each([
    ["nothing", ""],
    ["one byte", "10"],
    ["a head without an id", "08 0102"],
    ["a payload shorter than its length says", "08 0102030405060708 0400000000000000 616263"],
    ["a length beyond all bounds", "08 0102030405060708 ffffffffffffffff 616263"],
    ["text", Buffer.from("not a message, but some text").toString("hex")],
    ["zeroes, too few", "00 00000000000000"],
  ])("knows garbage: %s", (_, bytes) => {
    expect(unpackMember(hex(bytes))).toBeUndefined();
  });

  test("never throws, whatever the bytes", () => {
    let state = 1;
    const random = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
    for (let i = 0; i < 5_000; i++) {
      const bytes = Buffer.from(Array.from({ length: random(40) }, () => random(i % 2 ? 256 : 20)));
      const message = unpackMember(bytes);
      if (message !== undefined) {
        expect(message.id.length + message.payload.length).toBeLessThan(bytes.length);
      }
    }
  });
});

describe("ids", () => {
  const stamps = [0, 1, 255, 2 ** 32 - 1, 2 ** 32, 1_760_000_000_000_000, 1_760_000_000_000_001];

  test("have 16 bytes: the stamp, then eight random ones", () => {
    const id = createId(1_760_000_000_123_456);
    expect(id.length).toBe(16);
    expect(id.readBigUInt64BE(0)).toBe(1_760_000_000_123_456n);
  });

  test("sort by their stamps, whatever their random bytes are", () => {
    const ids = stamps.flatMap((stamp) => Array.from({ length: 20 }, () => createId(stamp)));
    const sorted = ids.toSorted((a, b) => Buffer.compare(a, b));
    expect(sorted.map((id) => id.readBigUInt64BE(0))).toEqual(
      ids.map((id) => id.readBigUInt64BE(0)),
    );
  });

  test("differ even if their stamps are equal", () => {
    const ids = Array.from({ length: 2_000 }, () => createId(5).toString("hex"));
    expect(new Set(ids).size).toBe(2_000);
  });

  test("keep the order of members with equal deadlines", () => {
    const members = stamps.map((stamp, i) =>
      packMember(createId(stamp), Buffer.alloc(stamps.length - i, 0xff - i)),
    );
    expect(members.toSorted((a, b) => Buffer.compare(a, b))).toEqual(members);
  });
});

describe("a message id", () => {
  test("is the deadline and the id in hex, in the form of a stream id", () => {
    expect(formatMessageId(1_755_757_960_123, hex("0102030405060708090a0b0c0d0e0f10"))).toBe(
      "1755757960123-0102030405060708090a0b0c0d0e0f10",
    );
  });

  // Only another program can have written the last scores.
  test.each([
    0,
    1,
    1_755_757_960_123,
    9e15 - 1,
    2 ** 63,
    1e300,
    Infinity,
    -Infinity,
    -5,
    1.5,
    1e-7,
  ])("with the deadline %d is recognised, and stands for the message's address", (deadline) => {
    for (const id of [hex("0102030405060708090a0b0c0d0e0f10"), hex("f1f2f3f4f5f6f7f8")]) {
      const text: string = formatMessageId(deadline, id);
      expect(isMessageId(text)).toBe(true);
      if (isMessageId(text)) expect(parseMessageId(text)).toEqual(packAddress(deadline, id));
    }
  });

  test.each([
    "",
    "order:42",
    "1755757960123",
    "1755757960123-",
    "-0102030405060708090a0b0c0d0e0f10",
    "1755757960123-0102030405060708090a0b0c0d0e0f1",
    "1755757960123-0102030405060708090A0B0C0D0E0F10",
    " 1755757960123-0102030405060708090a0b0c0d0e0f10",
    "1755757960123-0102030405060708090a0b0c0d0e0f10\n",
    "1755757960123.-0102030405060708090a0b0c0d0e0f10",
    "NaN-0102030405060708090a0b0c0d0e0f10",
  ])("is not %j", (text) => {
    expect(isMessageId(text)).toBe(false);
  });
});

describe("addresses", () => {
  const id = hex("0102030405060708090a0b0c0d0e0f10");

  test.each([
    [0, "0000000000000000"],
    [1_755_757_960_123, "00000198cb545bbb"],
    [2 ** 32, "0000000100000000"],
    [8_999_999_999_999_999, "001ff973cafa7fff"],
  ])("begin with the deadline %d in eight bytes, big-endian", (deadline, bytes) => {
    const address = packAddress(deadline, id);
    expect(address).toEqual(Buffer.concat([hex(bytes), id]));
    expect(address.length).toBe(ADDRESS_BYTES);
  });

  test("begin with another byte if the score is not a deadline", () => {
    for (const score of [2 ** 53, Infinity, -Infinity, -1, 0.5]) {
      expect(packAddress(score, id)[0]).not.toBe(0);
      expect(packAddress(score, id).readDoubleBE()).toBe(score);
    }
  });

  test("begin with 0 for every legal deadline, unlike Java's members", () => {
    expect(packAddress(9e15 - 1, id)[0]).toBe(0);
  });
});

describe("the message id of an address", () => {
  test.each([0, 1000, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER, 1.5, -1, 1e300, -Infinity])(
    "gives the address again, with a deadline of %d",
    (deadline) => {
      for (const length of [8, 16]) {
        const address = packAddress(deadline, Buffer.alloc(length, 0xab));
        const id = messageIdAt(address);
        expect(id).toBe(formatMessageId(deadline, Buffer.alloc(length, 0xab)));
        expect(parseMessageId(id)).toEqual(address);
      }
    },
  );
});
