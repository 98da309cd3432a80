import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { bytes } from "../../../src/codecs/bytes.ts";
import { json } from "../../../src/codecs/json.ts";
import { msgpack } from "../../../src/codecs/msgpack.ts";
import { string } from "../../../src/codecs/string.ts";
import {
  JavaValue,
  JsonJacksonCodec,
  Kryo5Codec,
  LongCodec,
  MsgPackJacksonCodec,
} from "../../../src/adapters/redisson/index.ts";

// Bytes that Redisson's codecs wrote, and what they read of ours, recorded from Redisson itself. Every line of the
// recordings counts: any value that is not read and written byte for byte is listed here, with the reason.

interface AnyCodec {
  encode(payload: never): Uint8Array;
  decode(raw: Buffer): unknown;
}

const encode = (codec: AnyCodec, payload: unknown) =>
  Buffer.from(codec.encode(payload as never)).toString("hex");
const decode = (codec: AnyCodec, hex: string) => codec.decode(Buffer.from(hex, "hex"));

const rows = (file: string, separator: RegExp) =>
  readFileSync(new URL(`../../fixtures/${file}`, import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split(separator));

const names = (list: string) => list.split(/,\s+/);

const UUID = "00000000-0000-0001-0000-000000000002";

describe("what Redisson writes", () => {
  /** Java's codec, our codec that reads it, and our codec that writes the value back. */
  const partners: Record<string, [reads: AnyCodec, writes?: AnyCodec]> = {
    StringCodec: [string],
    ByteArrayCodec: [bytes],
    LongCodec: [new LongCodec()],
    IntegerCodec: [new LongCodec()],
    JsonJacksonCodec: [new JsonJacksonCodec(), new JsonJacksonCodec({ keepTypes: true })],
    MsgPackJacksonCodec: [new MsgPackJacksonCodec(), new MsgPackJacksonCodec({ keepTypes: true })],
    "TypedJson<Object>": [json],
    "TypedJson<Map>": [json],
    "TypedJson(msgpackOM)": [msgpack],
    Kryo5Codec: [new Kryo5Codec()],
  };

  /** The contents of each value, whatever the codec. */
  const contents: Record<string, unknown> = {
    "String hi": "hi",
    "Long 5": 5,
    "Integer 5": 5,
    "Long 2^53+1": 2n ** 53n + 1n,
    "Double 1.5": 1.5,
    "Double 5.0": 5,
    "Float 1.5": 1.5,
    "Boolean true": true,
    "HashMap {a:1}": { a: 1 },
    "LinkedHashMap{a:1}": { a: 1 },
    "HashMap {a:1L}": { a: 1 },
    "Map.of(a,1)": { a: 1 },
    "ArrayList[x,1,2L]": ["x", 1, 2],
    "Arrays.asList(1,2)": [1, 2],
    "List.of(1,2)": [1, 2],
    "int[]{1,2}": [1, 2],
    "String[]": ["x"],
    "byte[]{1,2,3}": Buffer.from([1, 2, 3]),
    "Date(1000)": new Date(1000),
    UUID,
    "BigDecimal 1.10": 1.1,
    "POJO Order": { id: "x1", qty: 3, total: 9 },
    "record Rec": { a: "q", b: 7 },
    enum: "NEW",
    "char c": "c",
    null: null,
    // NON_NULL: Jackson omits it.
    "HashMap {a:null}": {},
  };

  const notSupported: Record<string, string> = {
    DoubleCodec: "decimal text of a double: codec string, and Number()",
    SerializationCodec: "Java's own serialization, for Java only",
  };

  /** The value as a codec has to read it, given the types that it cannot tell apart. */
  const readAs = (codec: string, value: string, hex: string): unknown => {
    if (codec === "StringCodec") return Buffer.from(hex, "hex").toString();
    const isText = codec.includes("Json") && !codec.includes("msgpack");
    if (isText && value === "byte[]{1,2,3}") return "AQID";
    if (codec.startsWith("TypedJson") && value === "Date(1000)") return 1000;
    return contents[value];
  };

  /** Java values that are one number in JavaScript, and numbers whose text differs. */
  const writtenOtherwise: Record<string, string[]> = {
    JsonJacksonCodec: ["Double 5.0", "BigDecimal 1.10"],
    MsgPackJacksonCodec: ["Double 5.0", "Float 1.5"],
    "TypedJson<Object>": ["Double 5.0", "BigDecimal 1.10"],
    "TypedJson<Map>": ["Double 5.0", "BigDecimal 1.10"],
    // In this format a bigint is a signed integer of 64 bits, where Jackson writes an unsigned one.
    "TypedJson(msgpackOM)": ["Double 5.0", "Float 1.5", "Long 2^53+1"],
    Kryo5Codec: ["Long 5", "Double 5.0", "Float 1.5", "UUID", "char c"],
  };

  const kryoObjects = [
    "HashMap {a:1}",
    "LinkedHashMap{a:1}",
    "HashMap {a:1L}",
    "Map.of(a,1)",
    "ArrayList[x,1,2L]",
    "Arrays.asList(1,2)",
    "List.of(1,2)",
    "int[]{1,2}",
    "String[]",
    "BigDecimal 1.10",
    "POJO Order",
    "record Rec",
    "enum",
    "HashMap {a:null}",
  ];

  test("each of 299 recorded values is read, and written back to the byte", () => {
    const counts: Record<string, number> = {};
    const count = (outcome: string) => (counts[outcome] = (counts[outcome] ?? 0) + 1);
    for (const row of rows("redisson-codec-bytes.txt", / +\| | \| -> /)) {
      const [codec = "", value = "", hex = ""] = row.map((cell) => cell.trim());
      const what = `${codec} of ${value}`;
      if (hex.startsWith("ENCODE FAIL")) {
        count("Java cannot write it");
        continue;
      }
      if (partners[codec] === undefined) {
        expect(notSupported, what).toHaveProperty(codec);
        count("not supported");
        continue;
      }
      const [reads, writes = reads] = partners[codec];
      if (reads instanceof LongCodec && !/^(3\d)+$/.test(hex)) {
        expect(row.at(-1), what).toContain("DECODE FAIL NumberFormatException");
        expect(() => decode(reads, hex), what).toThrow("not a whole number");
        count("not a number, for Java either");
      } else if (codec === "Kryo5Codec" && kryoObjects.includes(value)) {
        expect(() => decode(reads, hex), what).toThrow("for objects use TypedJsonJacksonCodec");
        count("an object of Kryo");
      } else {
        expect(decode(reads, hex), what).toEqual(readAs(codec, value, hex));
        if (writtenOtherwise[codec]?.includes(value) === true) count("read, written otherwise");
        else {
          expect(encode(writes, decode(writes, hex)), what).toBe(hex);
          count("read, written to the byte");
        }
      }
    }
    expect(counts).toEqual({
      "Java cannot write it": 7,
      "not supported": 51,
      "not a number, for Java either": 46,
      "an object of Kryo": 14,
      "read, written otherwise": 16,
      "read, written to the byte": 165,
    });
  });
});

describe("what Redisson writes, more of it", () => {
  const partners: Record<string, [reads: AnyCodec, writes?: AnyCodec]> = {
    JsonJacksonCodec: [new JsonJacksonCodec(), new JsonJacksonCodec({ keepTypes: true })],
    MsgPackJacksonCodec: [new MsgPackJacksonCodec(), new MsgPackJacksonCodec({ keepTypes: true })],
    TypedJson: [json],
    TypedMsgpack: [msgpack],
    Kryo5Codec: [new Kryo5Codec()],
  };
  const nested = {
    l: ["x", 1, 2],
    m: { b: 2 },
    d: new Date(5),
    blob: Buffer.from([1]),
    arr: ["a", "b"],
    lof: ["a", "b"],
  };
  const order = {
    any: "any",
    big: 10,
    blob: Buffer.from([1, 2]),
    dbl: 5,
    dec: 1.1,
    extra: { k: 1 },
    id: "x1",
    names: ["n1", "n2"],
    next: { id: "y", paid: false, price: 0, qty: 0, ts: 0 },
    nums: [1, 2],
    paid: true,
    price: 2.5,
    qty: 3,
    set: ["s"],
    tags: ["a", "b"],
    total: 9,
    ts: 1_755_757_960_123,
    uuid: UUID,
    when: new Date(1_755_757_960_123),
  };
  const contents: Record<string, unknown> = {
    null: null,
    "String empty": "",
    "String hi": "hi",
    "String a": "a",
    "String é😀 control": 'é😀\0\u001f\n"\\/\u007f\u2028',
    "String 31": "x".repeat(31),
    "String 32": "x".repeat(32),
    "String 33": "x".repeat(33),
    "String 63": "x".repeat(63),
    "String 64": "x".repeat(64),
    "String 65": "x".repeat(65),
    "String 40é": "é".repeat(40),
    "String 50中": "中".repeat(50),
    "String 300": "é".repeat(300),
    "String lone": "a\ud800",
    "Integer 5": 5,
    "Integer -1": -1,
    "Integer -129": -129,
    "Integer 127": 127,
    "Integer 128": 128,
    "Integer 65536": 65_536,
    "Integer max": 2 ** 31 - 1,
    "Integer min": -(2 ** 31),
    "Long 5": 5,
    "Long -5": -5,
    "Long now": 1_755_757_960_123,
    "Long -now": -1_755_757_960_123,
    "Long 2^32": 2 ** 32,
    "Long 2^32-1": 2 ** 32 - 1,
    "Long 2^53+1": 2n ** 53n + 1n,
    "Long max": 2n ** 63n - 1n,
    "Long min": -(2n ** 63n),
    "Double 1.5": 1.5,
    "Double 5.0": 5,
    "Double -0": -0,
    "Double NaN": NaN,
    "Double inf": Infinity,
    "Double 1e300": 1e300,
    "Double 1e-7": 1e-7,
    "Float 1.5": 1.5,
    "Float 0.1": Math.fround(0.1),
    "Short 7": 7,
    "Short -300": -300,
    "Byte 7": 7,
    "Byte -7": -7,
    "Character c": "c",
    "Character 中": "中",
    "Boolean true": true,
    "Boolean false": false,
    "Date 1000": new Date(1000),
    "Date now": new Date(1_755_757_960_123),
    "Date -1": new Date(-1),
    Timestamp: new Date(1_755_757_960_123),
    "byte[] 123": Buffer.from([1, 2, 3]),
    "byte[] 0": Buffer.alloc(0),
    BigInteger: 123_456_789_012_345_678_901_234_567_890n,
    "BigInteger 5": 5,
    BigDecimal: 1.1,
    UUID,
    enum: "NEW",
    TimeUnit: "SECONDS",
    "List.of a b": ["a", "b"],
    "List 3 same": [1, 2, 3],
    HashSet: ["a", "b"],
    EnumSet: ["NEW"],
    "int[]": [1, 2],
    "long[]": [1, 2],
    "String[] 2": ["a", "b"],
    "Object[]": ["a", 1, 2],
    nested,
    "empty map": {},
    "empty list": [],
    "Map int key": { 1: "x" },
    Order: order,
  };
  /** Types that a format does not have. */
  const readAs = (codec: string, value: string): unknown => {
    const plain = contents[value];
    const isText = codec.includes("Json");
    if (isText && (value === "Double NaN" || value === "Double inf")) return String(plain);
    if (isText && value === "Float 0.1") return 0.1;
    if (isText && plain instanceof Buffer) return plain.toString("base64");
    if (codec === "MsgPackJacksonCodec" || codec === "TypedMsgpack") {
      if (value === "String lone") return "a?";
    }
    if (codec.startsWith("Typed") && plain instanceof Date) return plain.getTime();
    const withoutDates = codec.startsWith("Typed");
    if (value === "nested") {
      const blob = codec === "TypedJson" ? "AQ==" : nested.blob;
      return { ...nested, blob, d: withoutDates ? 5 : nested.d };
    }
    if (value === "Order") {
      const blob = isText ? "AQI=" : order.blob;
      return { ...order, blob, when: withoutDates ? order.when.getTime() : order.when };
    }
    return plain;
  };
  const writtenOtherwise: Record<string, string[]> = {
    // Doubles have another text, and 5.0 is 5; the Order contains such doubles.
    JsonJacksonCodec: ["Double 5.0", "Double 1e300", "Double 1e-7", "BigDecimal", "Order"],
    MsgPackJacksonCodec: ["Double 5.0", "Float 1.5", "Float 0.1", "Order"],
    TypedJson: names(`String é😀 control, String lone, Double 5.0, Double -0, Double 1e300,
      Double 1e-7, BigDecimal, Order`),
    // Above 2^32 numbers are doubles, and a bigint is signed.
    TypedMsgpack: names(`Long now, Long -now, Long 2^32, Long 2^53+1, Long max, Date now,
      Timestamp, Double 5.0, Double -0, Float 1.5, Float 0.1, Order`),
    // Each of these takes a JavaValue.
    Kryo5Codec: names(`Long 5, Long -5, Double 5.0, Float 1.5, Float 0.1, Short 7, Short -300,
      Byte 7, Byte -7, Character c, Character 中, Timestamp, BigInteger 5, UUID`),
  };
  const kryoObjects = names(`BigDecimal, enum, TimeUnit, List.of a b, List 3 same, HashSet, EnumSet,
    int[], long[], String[] 2, Object[], nested, empty map, empty list, Map int key, Order`);

  test("each of 368 recorded values is read, and written back to the byte", () => {
    const counts: Record<string, number> = {};
    const count = (outcome: string) => (counts[outcome] = (counts[outcome] ?? 0) + 1);
    for (const [codec = "", value = "", hex = ""] of rows("redisson-writes.txt", / \| /)) {
      const what = `${codec} of ${value}`;
      const [reads, writes = reads] = partners[codec]!;
      if (codec === "Kryo5Codec" && kryoObjects.includes(value)) {
        expect(() => decode(reads, hex), what).toThrow("for objects use TypedJsonJacksonCodec");
        count("an object of Kryo");
        continue;
      }
      expect(decode(reads, hex), what).toEqual(readAs(codec, value));
      const isOther = writtenOtherwise[codec]!.includes(value);
      const again = encode(writes, decode(writes, hex));
      expect(again === hex, `${what}: ${again}, not ${hex}`).toBe(!isOther);
      count(isOther ? "read, written otherwise" : "read, written to the byte");
    }
    expect(counts).toEqual({
      "an object of Kryo": 16,
      "read, written otherwise": 43,
      "read, written to the byte": 309,
    });
  });

  test("before 4.2 a UUID has no class, and is read all the same", () => {
    expect(decode(new JsonJacksonCodec(), Buffer.from(`"${UUID}"`).toString("hex"))).toBe(UUID);
  });
});

/** The class that the recordings call `com.acme.Order`. */
class Order {
  declare readonly id: string;

  constructor(fields: object) {
    Object.assign(this, fields);
  }
}

const classOf = (value: object) => (value instanceof Order ? "com.acme.Order" : undefined);
const newOrder = (fields: object) => new Order(fields);
const java = (javaClass: string | undefined, value: unknown) => new JavaValue(javaClass, value);

/** For a Java codec that knows the class. */
const plainOrder = (when: number | bigint) => ({
  id: "x1",
  qty: 3,
  total: 9,
  ts: 1_755_757_960_123,
  price: 2.5,
  paid: true,
  tags: ["a", "b"],
  when,
  names: ["n1", "n2"],
  nums: [1, 2],
  extra: { k: 1 },
  set: ["s"],
  next: { id: "y" },
  any: "any",
  dbl: 5,
  dec: 1.1,
  big: 2n ** 53n + 1n,
});
describe("what Redisson reads of ours", () => {
  const values: Record<string, unknown> = {
    null: null,
    undef: undefined,
    str: "hi",
    empty: "",
    uni: 'é😀\0\u001f\n"\\/',
    int: 5,
    neg: -1,
    i32: 2 ** 31 - 1,
    now: 1_755_757_960_123,
    negnow: -1_755_757_960_123,
    max: 2 ** 53 - 1,
    two60: 2 ** 60,
    e300: 1e300,
    em7: 1e-7,
    d15: 1.5,
    m0: -0,
    nan: NaN,
    inf: -Infinity,
    big5: 5n,
    big53: 2n ** 53n + 1n,
    bigmin: -(2n ** 63n),
    big64: 2n ** 64n - 1n,
    bighuge: 123_456_789_012_345_678_901_234_567_890n,
    t: true,
    f: false,
    date: new Date(1_755_757_960_123),
    dneg: new Date(-1),
    bytes: Buffer.from([1, 2, 3]),
    nobytes: Buffer.alloc(0),
    arr: ["x", 1, 2n, null, [1.5, []]],
    set: new Set(["a", 1]),
    map: new Map<unknown, unknown>([
      ["a", 1],
      [2, "b"],
    ]),
    obj: { a: 1, n: null, u: undefined, o: { d: new Date(5), b: Buffer.from([1]) } },
    eobj: {},
    proto: JSON.parse('{"__proto__":{"x":1},"constructor":2}') as unknown,
    s33: "x".repeat(33),
    s70: "é".repeat(70),
    arr20: Array.from({ length: 20 }, (_, i) => i),
    obj20: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, i])),
    tojson: { toJSON: () => ({ z: 1 }) },
    jdouble: java("java.lang.Double", 5),
    jhash: java("java.util.HashSet", ["a"]),
    jlist: java("java.util.LinkedList", ["a", 2n]),
    juuid: java("java.util.UUID", UUID),
    jdec: java("java.math.BigDecimal", 1.1),
    jint: java("[I", [1, 2]),
    jstrs: java("[Ljava.lang.String;", ["a", "b"]),
    jts: java("java.sql.Timestamp", new Date(7)),
    jhm: java("java.util.HashMap", { a: 1 }),
    jenum: java("java.util.concurrent.TimeUnit", "DAYS"),
    jfloat: java("java.lang.Float", 1.5),
    jshort: java("java.lang.Short", -300),
    jbyte: java("java.lang.Byte", -7),
    jchar: java("java.lang.Character", "中"),
    jbig: java("java.math.BigInteger", 5n),
    order: newOrder({
      id: "x1",
      qty: 3,
      total: 9n,
      ts: 1_755_757_960_123,
      price: 2.5,
      paid: true,
      tags: ["a", "b"],
      when: new Date(1_755_757_960_123),
      blob: Buffer.from([1, 2]),
      names: java(undefined, ["n1", "n2"]),
      nums: java(undefined, [1, 2]),
      extra: { k: 1n },
      set: new Set(["s"]),
      next: newOrder({ id: "y" }),
      any: "any",
      dbl: 5,
      dec: java("java.math.BigDecimal", 1.1),
      big: java("java.math.BigInteger", 10n),
    }),
    listOfOrders: [newOrder({ id: "z", ts: 5 })],
    jorder: java("com.acme.Order", { id: "q", total: 1n, dbl: NaN, price: 3 }),
  };
  const codecs: Record<string, AnyCodec> = {
    JsonJacksonCodec: new JsonJacksonCodec({ classOf }),
    MsgPackJacksonCodec: new MsgPackJacksonCodec({ classOf }),
    Kryo5Codec: new Kryo5Codec(),
    LongCodec: new LongCodec(),
    TypedJson: json,
    TypedMsgpack: msgpack,
    TypedJsonOrder: json,
    TypedMsgpackOrder: msgpack,
  };

  test.each(rows("redisson-reads.txt", / \| /))(
    "%s: %s is written as the bytes that it reads",
    (codec = "", value = "", hex = "", read = "") => {
      const payload =
        codec === "TypedMsgpackOrder"
          ? plainOrder(1_755_757_960_123n)
          : codec === "TypedJsonOrder"
            ? plainOrder(1_755_757_960_123)
            : values[value];
      expect(encode(codecs[codec]!, payload)).toBe(hex);
      expect(read).not.toContain("FAIL");
    },
  );

  test("there is something of each value and codec", () => {
    const recorded = rows("redisson-reads.txt", / \| /);
    expect(recorded).toHaveLength(240);
    expect(new Set(recorded.map(([codec]) => codec))).toEqual(new Set(Object.keys(codecs)));
    expect(new Set(recorded.map(([, value]) => value))).toEqual(new Set(Object.keys(values)));
  });
});

/** The payload named by a line of the recording. */
function payloadOf(label: string, hex: string): unknown {
  const [type, text = ""] = label.split(/ (.*)/);
  const length = /len (\d+) \[(.*)\]/.exec(label);
  switch (type) {
    case "String":
      if (hex === "037b226964223a31fd") return '{"id":1}';
      return length![2]!.endsWith("…")
        ? length![2]!.slice(0, 1).repeat(Number(length![1]))
        : length![2];
    case "Boolean":
      return text === "true";
    case "Long":
      return new JavaValue("java.lang.Long", BigInt(text));
    case "Integer":
    case "Short":
    case "Byte":
    case "Double":
    case "Float":
      return new JavaValue(`java.lang.${type}`, Number(text));
    case "Character":
      return new JavaValue("java.lang.Character", text);
    case "byte[]":
      return Buffer.alloc(0);
    default:
      throw new Error(`unknown value ${label}`);
  }
}

describe("Kryo's scalars", () => {
  const kryo = new Kryo5Codec<never>();

  const lines = rows("kryo5-scalars.txt", / {2,}/);

  test("there are 38 recorded lines", () => {
    expect(lines).toHaveLength(38);
  });

  test.each(lines)("%s is written and read: %s", (label = "", cell = "") => {
    const [hex = "", size] = cell.split(/ \(/);
    const payload = payloadOf(label, hex);
    const written = encode(kryo, payload);
    // Long ones are recorded with a gap.
    const [head = "", rest = ""] = hex.split("…");
    expect(written.startsWith(head)).toBe(true);
    expect(written.endsWith(rest)).toBe(true);
    expect(written.length / 2).toBe(size === undefined ? hex.length / 2 : parseInt(size, 10));
    const value = payload instanceof JavaValue ? payload.value : payload;
    const isSmall = typeof value === "bigint" && Number.isSafeInteger(Number(value));
    expect(decode(kryo, written)).toEqual(isSmall ? Number(value) : value);
  });

  test("UTF-8 behind its length is no text of Kryo's: Java reads it as two characters and drops one", () => {
    expect(() => decode(kryo, "0303c3a9")).toThrow("there are more bytes after the value");
  });
});
