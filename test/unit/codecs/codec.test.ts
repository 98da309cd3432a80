import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import type { Codec } from "../../../src/codecs/codec.ts";
import { resolveCodec } from "../../../src/codecs/built-in.ts";
import { bytes } from "../../../src/codecs/bytes.ts";
import { json } from "../../../src/codecs/json.ts";
import { msgpack } from "../../../src/codecs/msgpack.ts";
import { string } from "../../../src/codecs/string.ts";
import { UnreadableError } from "../../../src/codecs/unreadable-error.ts";
import { UnwritableError } from "../../../src/codecs/unwritable-error.ts";

/** A codec for any payload. */
type AnyCodec = Pick<Codec<never>, "encode"> & Pick<Codec, "decode">;

const encoded = (codec: Pick<Codec<never>, "encode">, payload: unknown) =>
  Buffer.from(codec.encode(payload as never)).toString("hex");
const roundTrip = (codec: AnyCodec, payload: unknown): unknown =>
  codec.decode(Buffer.from(codec.encode(payload as never)));

/** `label -> hex`, as recorded from msgpackr 2.1.3 with these settings. */
const recorded = new Map(
  readFileSync(new URL("../../fixtures/msgpackr-bytes.txt", import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map(([, label = "", hex = ""]) => [label, hex]),
);

describe("msgpack", () => {
  const values: Record<string, unknown> = {
    "5": 5,
    hi: "hi",
    "2^32-1": 2 ** 32 - 1,
    "2^32": 2 ** 32,
    "now 1755757960123": 1_755_757_960_123,
    "2^53+1n": 2n ** 53n + 1n,
    "-1": -1,
    "-129": -129,
    "1.5": 1.5,
    "5.0": 5,
    true: true,
    null: null,
    undefined: undefined,
    "{a:1}": { a: 1 },
    "[x,1,2]": ["x", 1, 2],
    "Buffer 010203": Buffer.from("010203", "hex"),
    Uint8Array: new Uint8Array([1, 2, 3]),
    "Date(1000)": new Date(1000),
    "Date(1755757960123)": new Date(1_755_757_960_123),
    "-0": -0,
    NaN: NaN,
    str32: "x".repeat(32),
    emoji: "é😀",
  };

  test("has a value here for each of the recorded ones", () => {
    expect(Object.keys(values).toSorted()).toEqual([...recorded.keys()].toSorted());
  });

  test.each(Object.entries(values))("writes %s as it was recorded", (label, value) => {
    expect(encoded(msgpack, value)).toBe(recorded.get(label));
  });

  test.each<[string, unknown]>([
    ["an object", { id: 7, tags: ["a", "b"], nested: { deep: [null, true, 1.5] } }],
    ["an empty object", {}],
    ["a long text", "é😀".repeat(5_000)],
    ["bytes", Buffer.from("00ff80", "hex")],
    ["a date", new Date(1_755_757_960_123)],
    ["a date before 1970", new Date(-1)],
    ["the largest safe integer", Number.MAX_SAFE_INTEGER],
    ["the smallest safe integer", Number.MIN_SAFE_INTEGER],
    ["a bigint of 64 bits", 2n ** 64n - 1n],
    ["a negative bigint of 64 bits", -(2n ** 63n)],
    ["Infinity", Infinity],
    ["a key that Object.prototype has", { constructor: 1, toString: 2 }],
  ])("gives back %s", (_, value) => {
    expect(roundTrip(msgpack, value)).toEqual(value);
  });

  test("gives back bytes as a Buffer, and a nested list as it was", () => {
    expect(roundTrip(msgpack, { raw: new Uint8Array([1, 2]) })).toEqual({ raw: Buffer.of(1, 2) });
    expect(roundTrip(msgpack, [[1, [null, [2]]], []])).toEqual([[1, [null, [2]]], []]);
  });

  test("leaves a property out that is undefined, as JSON does; elsewhere it is null", () => {
    const payload = { a: undefined, b: [undefined, 1], c: { d: undefined }, e: null };
    expect(roundTrip(msgpack, payload)).toStrictEqual({ b: [null, 1], c: {}, e: null });
    expect(roundTrip(msgpack, payload)).toStrictEqual(roundTrip(json, payload));
    expect(roundTrip(msgpack, undefined)).toBeNull();
    const holes: number[] = [];
    holes[2] = 1;
    expect(roundTrip(msgpack, holes)).toEqual([null, null, 1]);
    // The caller's object stays as it was.
    expect("a" in payload).toBe(true);
  });

  test("writes what toJSON returns, as JSON does", () => {
    const payload = {
      url: new URL("https://example.org/a"),
      price: { toJSON: (key: string) => ({ key, cents: [99] }) },
      gone: { toJSON: () => undefined },
    };
    expect(roundTrip(msgpack, payload)).toStrictEqual({
      url: "https://example.org/a",
      price: { key: "price", cents: [99] },
    });
    expect(roundTrip(msgpack, payload)).toStrictEqual(roundTrip(json, payload));
  });

  test("takes objects without a prototype, and those of another realm", () => {
    const bare = Object.assign(Object.create(null) as object, { a: [1] });
    expect(roundTrip(msgpack, bare)).toEqual({ a: [1] });
    expect(roundTrip(msgpack, runInNewContext("({ a: [1, { b: 'c' }], u: undefined })"))).toEqual({
      a: [1, { b: "c" }],
    });
  });

  class Order {
    readonly secret = "4111";
  }

  test.each<[string, unknown]>([
    ["a function", () => "4111"],
    ["a symbol", Symbol("4111")],
    ["an instance of Map", new Map([["4111", 1]])],
    ["an instance of Set", new Set(["4111"])],
    ["an instance of Error", new Error("4111")],
    ["an instance of TypeError", new TypeError("4111")],
    ["an instance of RegExp", /4111/],
    ["an instance of Order", new Order()],
    ["an instance of a class", Object.create({ constructor: 5 })],
    ["an instance of Number", Object(4111)],
    ["an instance of ArrayBuffer", new ArrayBuffer(3)],
    ["an instance of Float64Array", new Float64Array([4111])],
    ["a Promise (await it)", Promise.resolve("4111")],
    ["an invalid Date", new Date("4111-41-11")],
    ["a text that is not well-formed Unicode", "4111 \ud800"],
    ["a property with a name that is not well-formed Unicode", { "\ud83d": 4111 }],
    ["a property named __proto__", JSON.parse('{"__proto__":4111}')],
  ])("refuses %s and says where, but does not quote it", (kind, value) => {
    const places: [string, unknown][] = [
      ["", value],
      [" at payload[0]", [value]],
      [" at payload.items[1].price", { id: 1, items: [{}, { price: value }] }],
      [" at payload[...][...]", { "a b": { "c.d": value } }],
    ];
    for (const [place, payload] of places) {
      const message = `${kind}${place} has no MessagePack form`;
      expect(() => msgpack.encode(payload)).toThrow(new UnwritableError(message));
    }
  });

  test("gives back a byte order mark, and any text, at every length and place", () => {
    for (let length = 0; length < 300; length = length < 70 ? length + 1 : length * 2) {
      for (const text of ["\ufeff", "x\ufeff", "\ufffd\u0000", "é😀"]) {
        const long = text + "x".repeat(length);
        expect(roundTrip(msgpack, { [long]: [long] })).toEqual({ [long]: [long] });
        expect(roundTrip(msgpack, long)).toBe(long);
      }
    }
  });

  test.each(["a1ff", "a1c3", "a3eda080", "81a1ff01", "d921" + "ff".repeat(33)])(
    "refuses a text that is not UTF-8, as the other codecs do: %s",
    (hex) => {
      expect(() => msgpack.decode(Buffer.from(hex, "hex"))).toThrow(UnreadableError);
    },
  );

  test("reads every form of the specification", () => {
    const forms: Record<string, unknown> = {
      cc80: 128,
      cdffff: 65_535,
      d080: -128,
      d28000: undefined,
      d280000000: -(2 ** 31),
      d3ffffffffffffffff: -1,
      ca3fc00000: 1.5,
      dc000101: [1],
      dd0000000101: [1],
      de00010101: { 1: 1 },
      df0000000101c0: { 1: null },
      c50001aa: Buffer.of(0xaa),
      c600000001aa: Buffer.of(0xaa),
      da000161: "a",
      db0000000161: "a",
      c70cff3b9ac9ff00000000000003e8: new Date(1_000_999),
      dd7fffffff: undefined,
    };
    for (const [hex, value] of Object.entries(forms)) {
      const read = () => msgpack.decode(Buffer.from(hex, "hex"));
      if (value === undefined) expect(read, hex).toThrow(UnreadableError);
      else expect(read(), hex).toEqual(value);
    }
  });

  test("gives back a bigint as a number where a number holds it", () => {
    expect(roundTrip(msgpack, 5n)).toBe(5);
    expect(roundTrip(msgpack, -5n)).toBe(-5);
    expect(roundTrip(msgpack, 2n ** 53n + 1n)).toBe(2n ** 53n + 1n);
  });

  test("reads 64-bit integers of other writers, Java's longs among them, as numbers", () => {
    // Jackson writes the Long 1755757960123 so.
    expect(msgpack.decode(Buffer.from("cf00000198cb545bbb", "hex"))).toBe(1_755_757_960_123);
  });

  test("decodes nothing to undefined, which means that there is no message", () => {
    // msgpackr's own default for undefined: an extension of type 0.
    expect(msgpack.decode(Buffer.from("d40000", "hex"))).toBeNull();
  });

  test("decodes msgpackr's undefined to null also where it is inside something", () => {
    const raw = Buffer.from("82a161d40000a16292d40000d4730091d40000", "hex");
    expect(msgpack.decode(raw)).toEqual({ a: null, b: [null, new Set([null])] });
  });

  test.each([
    ["the byte that MessagePack never uses", "c1"],
    ["the same, inside something", "92c101"],
    ["a map whose key is a map", "8180c0"],
    ["a timestamp of a length that there is not", "c705ff0000000000"],
    ["an extension that nobody knows", "d40501"],
    ["a value that holds itself", "d6690000000191d67000000001"],
  ])("throws for %s", (_, hex) => {
    expect(() => msgpack.decode(Buffer.from(hex, "hex"))).toThrow("the bytes are not MessagePack");
  });

  test("leaves no trace of one message in another", () => {
    // One of msgpackr's records, which defines the shape 0x40 for the bytes after it.
    msgpack.decode(Buffer.from("d4724091a16101", "hex"));
    expect(msgpack.decode(Buffer.from("40", "hex"))).toBe(64);
    expect(encoded(msgpack, { a: 1 })).toBe("81a16101");
  });

  test("does not let a payload set a prototype", () => {
    const evil = Buffer.from("81a95f5f70726f746f5f5f81a57669727573c3", "hex");
    const payload = msgpack.decode(evil) as { virus?: unknown };
    expect(payload.virus).toBeUndefined();
    expect(({} as { virus?: unknown }).virus).toBeUndefined();
  });

  test("gives bytes of their own: decoded bytes do not share memory with the reply", () => {
    const reply = Buffer.from("c403010203", "hex");
    const payload = msgpack.decode(reply) as Buffer;
    reply.fill(0);
    expect(payload).toEqual(Buffer.from("010203", "hex"));
  });

  test("gives bytes that the next encoding does not change", () => {
    const first = msgpack.encode({ n: 1 });
    const before = Buffer.from(first);
    for (let i = 0; i < 2_000; i++) msgpack.encode({ n: i, text: "x".repeat(100) });
    expect(Buffer.from(first)).toEqual(before);
  });

  test.each([
    ["nothing at all", ""],
    ["a text that is cut off", "a568656c"],
    ["a map that is cut off", "82a16101"],
    ["more behind the value", "0505"],
  ])("throws for %s", (_, hex) => {
    expect(() => msgpack.decode(Buffer.from(hex, "hex"))).toThrow(Error);
  });

  test.each([2n ** 64n, -(2n ** 63n) - 1n, 424_242n ** 9n])(
    "refuses a bigint of more than 64 bits, and does not quote it: %s",
    (payload) => {
      for (const value of [payload, { deep: [payload] }]) {
        expect(() => msgpack.encode(value)).toThrow(
          new RangeError("a bigint has more than 64 bits"),
        );
      }
    },
  );

  test("does not blame a bigint for an object that holds itself", () => {
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    expect(() => msgpack.encode(circular)).toThrow(RangeError);
    expect(() => msgpack.encode(circular)).not.toThrow("bigint");
  });

  test("encodes as before after a payload that was refused", () => {
    expect(() => msgpack.encode({ text: "x".repeat(1_000), n: 2n ** 70n })).toThrow(RangeError);
    expect(encoded(msgpack, { a: 1 })).toBe("81a16101");
  });
});

describe("json", () => {
  test.each<[unknown, string]>([
    [{ id: 7, name: "é😀" }, '{"id":7,"name":"é😀"}'],
    [[1, null, "a"], '[1,null,"a"]'],
    ["text", '"text"'],
    [null, "null"],
    [undefined, "null"],
    [0, "0"],
    [false, "false"],
    ["", '""'],
    [{ a: undefined, b: 1 }, '{"b":1}'],
    [new Date(1_000), '"1970-01-01T00:00:01.000Z"'],
  ])("writes %j as text in UTF-8", (payload, text) => {
    expect(Buffer.from(json.encode(payload)).toString()).toBe(text);
  });

  test("does with other things what JSON.stringify does", () => {
    const payload = {
      f: () => {},
      s: Symbol("s"),
      list: [() => {}, Symbol("s"), undefined, NaN, Infinity],
      map: new Map([["a", 1]]),
      set: new Set([1]),
      error: new Error("no"),
      pattern: /a/,
      date: new Date(1_000),
      bytes: Buffer.of(1),
    };
    expect(roundTrip(json, payload)).toStrictEqual({
      list: [null, null, null, null, null],
      map: {},
      set: {},
      error: {},
      pattern: {},
      date: "1970-01-01T00:00:01.000Z",
      bytes: { type: "Buffer", data: [1] },
    });
  });

  test("gives back what JSON keeps", () => {
    const order = { id: 7, tags: ["a"], total: 1.5, paid: false, note: null };
    expect(roundTrip(json, order)).toEqual(order);
  });

  test.each([
    ["function", () => {}],
    ["symbol", Symbol("s")],
    ["object", { toJSON: () => undefined }],
  ])("refuses a %s that has no JSON form", (type, payload) => {
    expect(() => json.encode(payload)).toThrow(new UnwritableError(`a ${type} has no JSON form`));
  });

  test("passes on what JSON.stringify says of cycles, with and without a bigint", () => {
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    expect(() => json.encode(circular)).toThrow("circular");
    circular["n"] = 5n;
    expect(() => json.encode(circular)).toThrow("circular");
  });

  test.each(["", "{", "{'a':1}", "undefined", '{"a":1}x'])("throws for the text %j", (text) => {
    expect(() => json.decode(Buffer.from(text))).toThrow(
      new UnreadableError("the bytes are not JSON"),
    );
  });

  test.each(["22ff22", "22c3", "22eda08022"])("throws for what is not UTF-8: %s", (hex) => {
    expect(() => json.decode(Buffer.from(hex, "hex"))).toThrow("the bytes are not UTF-8");
  });

  test.each<[string, unknown]>([
    ["9007199254740991", 2 ** 53 - 1],
    ["-9007199254740991", -(2 ** 53) + 1],
    ["9007199254740992", 2n ** 53n],
    ["9007199254740993", 2n ** 53n + 1n],
    ["-9223372036854775808", -(2n ** 63n)],
    ["123456789012345678901234567890", 123_456_789_012_345_678_901_234_567_890n],
    ['{"id":9007199254740993}', { id: 2n ** 53n + 1n }],
    ['["9007199254740993",[9007199254740993,1]]', ["9007199254740993", [2n ** 53n + 1n, 1]]],
    ['{"9007199254740993":"\\"9007199254740993"}', { "9007199254740993": '"9007199254740993' }],
    ["0.12345678901234567890", 0.12345678901234568],
    ["1e300", 1e300],
    ["12345678901234567890.5", 12_345_678_901_234_567_000],
    ["0000000000000001", undefined],
    ["{9007199254740993:1}", undefined],
    [`1${"0".repeat(1000)}`, undefined],
  ])("no whole number becomes another one: %s", (text, expected) => {
    const decode = () => json.decode(Buffer.from(text));
    if (expected === undefined) expect(decode).toThrow(UnreadableError);
    else expect(decode()).toEqual(expected);
  });

  test("writes a bigint as the number that it is, and gives it back", () => {
    const payload = { id: 2n ** 63n - 1n, text: "5", list: [5n, -(2n ** 70n)], n: 1.5 };
    const text = '{"id":9223372036854775807,"text":"5","list":[5,-1180591620717411303424],"n":1.5}';
    expect(Buffer.from(json.encode(payload)).toString()).toBe(text);
    expect(roundTrip(json, payload)).toEqual({ ...payload, list: [5, -(2n ** 70n)] });
  });

  test.each<[number, string]>([
    [2 ** 53 - 1, "9007199254740991"],
    [2 ** 53, "9.007199254740992e+15"],
    [-(2 ** 60), "-1.152921504606847e+18"],
    [1e20, "1e+20"],
    [1e21, "1e+21"],
    [0.1234567890123456, "0.1234567890123456"],
  ])("a number comes back as the same number: %s", (number, text) => {
    const payload = { n: number, text: `${number}` };
    expect(Buffer.from(json.encode(payload)).toString()).toBe(`{"n":${text},"text":"${number}"}`);
    expect(roundTrip(json, payload)).toEqual(payload);
  });

  test("a key __proto__ is a key like others, beside large numbers too", () => {
    for (const number of ["1", "9007199254740993"]) {
      const text = `{"__proto__":{"virus":true},"n":${number}}`;
      const payload = json.decode(Buffer.from(text)) as object;
      expect(Object.keys(payload)).toEqual(["__proto__", "n"]);
      expect("virus" in payload).toBe(false);
    }
  });
});

describe("string", () => {
  test.each(["", "hi", "é😀", "a\0b", "\ufeffwith a byte order mark", "x".repeat(10_000)])(
    "writes text as its UTF-8 and gives it back: %#",
    (text) => {
      expect(Buffer.from(string.encode(text))).toEqual(Buffer.from(text));
      expect(roundTrip(string, text)).toBe(text);
    },
  );

  test.each([
    ["number", 5],
    ["object", null],
    ["undefined", undefined],
    ["object", Buffer.from("hi")],
    ["object", Object("hi")],
  ])("takes no %s", (type, payload) => {
    expect(() => string.encode(payload as never)).toThrow(
      new UnwritableError(`the string codec takes strings, got ${type}`),
    );
  });

  test("refuses a lone surrogate, which UTF-8 cannot hold", () => {
    expect(() => string.encode("secret \ud800")).toThrow(
      new UnwritableError("the string is not well-formed Unicode"),
    );
  });

  test.each(["ff", "61c3", "eda080", "c080", "f4908080"])(
    "throws for bytes that are not UTF-8, rather than replace them: %s",
    (hex) => {
      expect(() => string.decode(Buffer.from(hex, "hex"))).toThrow("the bytes are not UTF-8");
    },
  );
});

describe("bytes", () => {
  test.each([
    ["a Buffer", Buffer.from([0, 255, 128])],
    ["a Uint8Array", new Uint8Array([0, 255, 128])],
    ["a part of a larger one", new Uint8Array([9, 0, 255, 128, 9]).subarray(1, 4)],
  ])("writes %s as it is", (_, payload) => {
    expect(encoded(bytes, payload)).toBe("00ff80");
    expect(roundTrip(bytes, payload)).toEqual(Buffer.from("00ff80", "hex"));
  });

  test("copies on both ways", () => {
    const mine = Buffer.from("abc");
    const sent = bytes.encode(mine);
    mine.fill(0);
    expect(Buffer.from(sent).toString()).toBe("abc");

    const reply = Buffer.from("abc");
    const received = bytes.decode(reply);
    reply.fill(0);
    expect(Buffer.from(received).toString()).toBe("abc");
  });

  test.each([
    ["string", "abc"],
    ["object", [1, 2]],
    ["object", new Uint16Array([1])],
    ["object", new ArrayBuffer(3)],
    ["object", null],
  ])("takes no %s that is not a Uint8Array", (type, payload) => {
    expect(() => bytes.encode(payload as never)).toThrow(
      new UnwritableError(`the bytes codec takes a Uint8Array, got ${type}`),
    );
  });
});

describe("choosing a codec", () => {
  test.each(["msgpack", "json", "string", "bytes"] as const)("by name: %s", (name) => {
    expect(resolveCodec(name).name).toBe(name);
  });

  test("one's own, used as it is, `this` included", () => {
    class Reversed implements Codec<string> {
      readonly name = "reversed";
      encode(text: string) {
        return Buffer.from(text).toReversed();
      }
      decode(raw: Buffer) {
        return Buffer.from(raw.toReversed()).toString();
      }
    }
    const codec = new Reversed();
    expect(resolveCodec(codec)).toBe(codec);
  });

  test.each<[string, unknown]>([
    ['"xml"', "xml"],
    ['"toString"', "toString"],
    ['""', ""],
    ["number", 5],
    ["object", null],
    ["object", {}],
    ["function", JSON.stringify],
    ["object", JSON],
    ["object", { encode() {}, decode() {} }],
    ["object", { name: "mine", encode() {} }],
    ["object", { name: 5, encode() {}, decode() {} }],
  ])("refuses what is none: %s", (got, codec) => {
    expect(() => resolveCodec(codec as never)).toThrow(
      new TypeError(
        `codec must be msgpack, json, string, bytes or an object with name, encode and decode; got ${got}`,
      ),
    );
  });
});
