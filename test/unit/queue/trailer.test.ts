import { describe, expect, test } from "vitest";
import { packMember, unpackMember } from "../../../src/queue/message/message.ts";
import {
  failuresIn,
  packTrailer,
  unpackTrailer,
  type Trailer,
} from "../../../src/queue/message/trailer.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

/** Reads the fields of both. */
const twice = (trailer: Partial<Trailer>, other: Partial<Trailer>) =>
  unpackTrailer(Buffer.concat([packTrailer(trailer), packTrailer(other).subarray(2)]));

const NOTHING = { key: undefined, headers: undefined, attempts: undefined };

const VECTORS: [what: string, trailer: Partial<Trailer>, bytes: string][] = [
  ["nothing", {}, ""],
  ["a key alone, which stands bare", { key: "order:42" }, "6f726465723a3432"],
  ["a count", { attempts: 258 }, "ff01 03 04000000 02010000"],
  ["a header", { headers: { a: "bc" } }, "ff01 02 05000000 0100 61 6263"],
  [
    "what was collected",
    { collected: [Buffer.from("ab"), Buffer.alloc(0)] },
    `ff01 0b 34000000 02000000 02000000 ${"00".repeat(17)} 02000000 6162 ${"00".repeat(17)} 00000000`,
  ],
  [
    "all",
    { key: "k", headers: { é: "", a: "1" }, attempts: 1 },
    "ff01 01 01000000 6b 02 04000000 0200 c3a9 02 04000000 0100 61 31 03 04000000 01000000",
  ],
];

describe("a trailer", () => {
  test.each(VECTORS)("has these bytes with %s", (_, trailer, bytes) => {
    expect(packTrailer(trailer)).toEqual(hex(bytes));
    expect(unpackTrailer(hex(bytes))).toEqual({ ...NOTHING, ...trailer });
  });

  test("is empty or a bare key if there are no headers", () => {
    expect(packTrailer({ key: "k", headers: {} })).toEqual(Buffer.from("k"));
    expect(packTrailer({ key: "" })).toEqual(Buffer.alloc(0));
  });

  test("keeps known fields beside unknown ones", () => {
    const bytes = hex("ff01 63 00000000 01 01000000 6b 63 02000000 0102");
    expect(unpackTrailer(bytes)).toEqual({ ...NOTHING, key: "k" });
  });

  test("keeps the first of several keys, counts, and headers with the same name", () => {
    expect(twice({ key: "a", attempts: 1 }, { key: "b", attempts: 2 })).toEqual({
      ...NOTHING,
      key: "a",
      attempts: 1,
    });
    expect(twice({ headers: { n: "1" } }, { headers: { n: "2" } }).headers).toEqual({ n: "1" });
  });

  test.each([
    ["a header whose name is longer than it", "ff01 02 03000000 0200 61"],
    ["a header too short for a name", "ff01 02 01000000 00"],
    ["a count of three bytes", "ff01 03 03000000 010000"],
    ["an empty key", "ff01 01 00000000"],
    [
      "payloads that do not fill their field",
      `ff01 0b 1e000000 01000000 02000000 ${"00".repeat(17)} 02000000 61`,
    ],
    ["payloads that are none", "ff01 0b 08000000 00000000 00000000"],
  ])("skips %s", (_, bytes) => {
    expect(unpackTrailer(hex(bytes))).toEqual(NOTHING);
    const more = hex("03 04000000 07000000");
    expect(unpackTrailer(Buffer.concat([hex(bytes), more]))).toEqual({ ...NOTHING, attempts: 7 });
  });

  test.each([
    ["a mark alone", "ff"],
    ["another version", "ff02 01 01000000 6b"],
    ["a field that is cut off", "ff01 01 01000000 6b 02 05000000 0100"],
    ["a head that is cut off", "ff01 01 01000000 6b 02 0500"],
    ["a length beyond all bounds", "ff01 01 01000000 6b 02 ffffffff 00"],
  ])("says nothing with %s, and the message is there all the same", (_, bytes) => {
    expect(unpackTrailer(hex(bytes))).toEqual(NOTHING);
    const id = Buffer.alloc(16, 3);
    const member = Buffer.concat([packMember(id, Buffer.from("abc")), hex(bytes)]);
    expect(unpackMember(member)).toEqual({ ...NOTHING, id, payload: Buffer.from("abc") });
  });

  test("may have a header of any name", () => {
    const headers = Object.fromEntries([
      ["__proto__", "a"],
      ["", "b"],
      ["toString", "c"],
    ]);
    expect(unpackTrailer(packTrailer({ headers })).headers).toEqual(headers);
  });

  test("stands after the payload of a message", () => {
    const id = Buffer.alloc(16, 3);
    const more = { headers: { trace: "1" }, attempts: 2 };
    const member = packMember(id, Buffer.from("abc"), "k", more);
    expect(unpackMember(member)).toEqual({ id, payload: Buffer.from("abc"), key: "k", ...more });
  });

  const FAILURES = [
    { at: 1_760_000_000_123, attempt: 1, reason: "é" },
    { at: 0, attempt: 2 ** 32 - 1, reason: "" },
  ];
  const [FIRST, SECOND] = [
    "04 0e000000 7bc02cc899010000 01000000 c3a9",
    "04 0c000000 0000000000000000 ffffffff",
  ];

  test("holds the failures in order", () => {
    const bytes = hex(`ff01 01 01000000 6b ${FIRST} ${SECOND}`);
    expect(packTrailer({ key: "k", failures: FAILURES })).toEqual(bytes);
    expect(failuresIn(bytes)).toEqual(FAILURES);
    expect(unpackTrailer(bytes)).toEqual({ ...NOTHING, key: "k" });
    expect(packTrailer({ failures: [] })).toEqual(Buffer.alloc(0));
  });

  test.each([
    ["nothing", "", 0],
    ["a bare key", "6b", 0],
    ["another version", `ff02 ${FIRST}`, 0],
    ["a field that is cut off", `ff01 ${FIRST} 04 0c000000 00`, 0],
    ["one too short", `ff01 04 0b000000 0000000000000000 ffffff ${FIRST}`, 1],
    ["an instant that is none", `ff01 04 0c000000 ffffffffffffffff 00000000 ${FIRST}`, 1],
  ])("tells no failure that makes no sense: %s", (_, bytes, count) => {
    expect(failuresIn(hex(bytes))).toEqual(FAILURES.slice(0, count));
  });
});
