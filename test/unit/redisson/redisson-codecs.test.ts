import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import {
  JavaValue,
  JsonJacksonCodec,
  Kryo5Codec,
  LongCodec,
  MsgPackJacksonCodec,
  type JacksonOptions,
} from "../../../src/adapters/redisson/index.ts";

// Cases without recorded bytes: choices, refusals, hostile bytes.

const text = (payload: unknown, options?: JacksonOptions) =>
  Buffer.from(new JsonJacksonCodec(options).encode(payload)).toString();
const deep = (times: number) => `${"[".repeat(times)}${"]".repeat(times)}`;
const parse = (json: string, options?: JacksonOptions) =>
  new JsonJacksonCodec(options).decode(Buffer.from(json));

describe("type ids", () => {
  test("are put in front of what is in collections and maps", () => {
    expect(text({ list: [1n, new Date(5)], map: { a: null } })).toBe(
      '{"@class":"java.util.LinkedHashMap",' +
        '"list":["java.util.ArrayList",[["java.lang.Long",1],["java.util.Date",5]]],' +
        '"map":{"@class":"java.util.LinkedHashMap","a":null}}',
    );
  });

  test("of a class of the user's own come from classOf, at every depth", () => {
    class Order {
      readonly id = "x1";
      readonly lines = [new Line()];
      readonly raw = Buffer.from([1]);
    }
    class Line {
      readonly count = 2n;
    }
    const classOf = (value: object) =>
      value instanceof Order || value instanceof Line
        ? `com.acme.${value.constructor.name}`
        : undefined;
    expect(text(new Order(), { classOf })).toBe(
      '{"@class":"com.acme.Order","id":"x1","lines":["java.util.ArrayList",' +
        '[{"@class":"com.acme.Line","count":["java.lang.Long",2]}]],"raw":"AQ=="}',
    );
  });

  test("may be a property of the payload, if the user says so", () => {
    const payload = { id: 1, "@class": "com.acme.Order" };
    const classOf = (value: object) => (value as Partial<typeof payload>)["@class"];
    expect(text(payload, { classOf })).toBe('{"@class":"com.acme.Order","id":1}');
  });

  test("do not come from payloads otherwise: who chooses a class can make Java run it", () => {
    for (const payload of [
      { "@class": "com.acme.Evil" },
      [{ deep: { "@class": "com.acme.Evil" } }],
      new Map([["@class", "com.acme.Evil"]]),
      new JavaValue("com.acme.Order", { "@class": "com.acme.Evil" }),
      { toJSON: () => ({ "@class": "com.acme.Evil" }) },
    ]) {
      for (const codec of [new JsonJacksonCodec(), new MsgPackJacksonCodec()]) {
        expect(() => codec.encode(payload)).toThrow("must not have a property @class");
      }
    }
  });

  test("are class names", () => {
    for (const name of ["", "com.acme.", "a b", 'x"', "[", "[X", "x".repeat(501), 5]) {
      expect(() => text({}, { classOf: () => name as string })).toThrow("classOf must return");
      if (name !== 5) {
        expect(() => text(new JavaValue(name as string, 1))).toThrow("name of a Java class");
      }
    }
  });

  test("are taken out again", () => {
    expect(
      parse('{"@class":"com.acme.Order","a":["java.util.HashSet",[["java.lang.Long",1]]]}'),
    ).toEqual({ a: [1] });
  });

  test.each<[string, unknown]>([
    // Lists that Java wrote without a class, and cannot read itself.
    ['["a","b"]', ["a", "b"]],
    ['["example.com","b"]', ["example.com", "b"]],
    ['["1.5","2"]', ["1.5", "2"]],
    ['["a.B"]', ["a.B"]],
    ['["a.B",1,2]', ["a.B", 1, 2]],
    ['[1,"a.B"]', [1, "a.B"]],
    ['["java.lang.Long","x"]', ["java.lang.Long", "x"]],
    ['["java.util.ArrayList",1]', ["java.util.ArrayList", 1]],
    ["[]", []],
    // Wrappers of unknown classes.
    ['["com.acme.Money","5 EUR"]', "5 EUR"],
    ['["com.acme.Outer$Inner",{"a":1}]', { a: 1 }],
    ['["[J",[1]]', [1]],
    ['["java.util.EnumSet<com.acme.Color>",["RED"]]', ["RED"]],
    ['["java.lang.Double","NaN"]', NaN],
    ['["java.util.Date",null]', null],
    ['["java.util.Date","1970-01-01T00:00:01.000+00:00"]', new Date(1000)],
    ['["java.util.Date","soon"]', ["java.util.Date", "soon"]],
    ['{"@class":5,"a":1}', { "@class": 5, a: 1 }],
    ['["[B","AQID"]', Buffer.from([1, 2, 3])],
    ['["java.math.BigInteger",9007199254740993]', 9_007_199_254_740_993n],
  ])("an array of two is a wrapper if it can be one: %s", (json, expected) => {
    expect(parse(json)).toEqual(expected);
  });

  test("stay where they are asked for, and go back as they came", () => {
    const json =
      '{"@class":"com.acme.Order","tags":["java.util.ArrayList",["a"]],"set":["java.util.TreeSet",' +
      '["b"]],"total":["java.lang.Long",9],"names":["n1","n2"],"when":["java.util.Date",5]}';
    const order = parse(json, { keepTypes: true });
    expect(order).toEqual(
      new JavaValue("com.acme.Order", {
        tags: ["a"],
        set: new JavaValue("java.util.TreeSet", ["b"]),
        total: 9n,
        names: new JavaValue(undefined, ["n1", "n2"]),
        when: new Date(5),
      }),
    );
    expect(text(order)).toBe(json);
  });
});

describe("what has no Java form is refused", () => {
  const circular: unknown[] = [];
  circular.push(circular);

  test.each<[string, unknown]>([
    ["a function", () => {}],
    ["a function inside", { secret: [() => {}] }],
    ["a symbol", Symbol("secret")],
    ["an array that holds itself", circular],
    ["an invalid date", new Date(NaN)],
    ["other typed arrays", new Uint16Array(1)],
    ["a Map with keys that are objects", new Map([[{}, 1]])],
    ["a JavaValue around a JavaValue", new JavaValue("a.B", new JavaValue("a.C", 1))],
  ])("%s", (_, payload) => {
    for (const codec of [new JsonJacksonCodec(), new MsgPackJacksonCodec()]) {
      expect(() => codec.encode(payload)).toThrow(/^(?!.*secret).*$/);
    }
  });

  test("a bigint of more than 64 bits, in MessagePack", () => {
    for (const n of [2n ** 64n, -(2n ** 63n) - 1n]) {
      expect(() => new MsgPackJacksonCodec().encode([n])).toThrow("more than 64 bits");
    }
  });

  test("a lone surrogate, in MessagePack", () => {
    expect(() => new MsgPackJacksonCodec().encode("\ud800")).toThrow("not well-formed");
    expect(() => new MsgPackJacksonCodec().encode({ "\ud800": 1 })).toThrow("not well-formed");
  });

  test.each([
    [{ classof: () => undefined }, 'must be one of classOf, keepTypes, got "classof"'],
    [{ classOf: "com.acme.Order" }, "classOf must be a function, got string"],
    [{ keepTypes: 1 }, "keepTypes must be a boolean, got number"],
  ])("an option that is none: %j", (options, message) => {
    for (const Codec of [JsonJacksonCodec, MsgPackJacksonCodec]) {
      expect(() => new Codec(options as never)).toThrow(message);
    }
  });
});

describe("hostile bytes", () => {
  const codecs = [
    new JsonJacksonCodec(),
    new JsonJacksonCodec({ keepTypes: true }),
    new MsgPackJacksonCodec(),
    new Kryo5Codec(),
    new LongCodec(),
  ];

  test("an error quotes nothing of them", () => {
    for (const codec of codecs) {
      for (const raw of ["{secret", '"secret" secret', "\xff secret", "", "\x01\x00secre\xf4"]) {
        let error: unknown;
        try {
          codec.decode(Buffer.from(raw, "latin1"));
        } catch (caught) {
          error = caught;
        }
        expect(error).toBeInstanceOf(Error);
        expect(
          inspect(error, { showHidden: true, depth: 9 }).replaceAll(/ at .*/g, ""),
        ).not.toMatch(/secre/);
      }
    }
  });

  test("__proto__ is a key like others", () => {
    for (const options of [{}, { keepTypes: true }]) {
      const json = '{"@class":"java.util.LinkedHashMap","__proto__":{"virus":true}}';
      const payload = parse(json, options) as object;
      expect(Object.keys(payload)).toEqual(["__proto__"]);
      expect("virus" in payload).toBe(false);
    }
    expect("virus" in {}).toBe(false);
  });

  test("nesting has an end", () => {
    expect(() => parse(deep(900))).not.toThrow();
    for (const times of [2_000, 200_000]) expect(() => parse(deep(times))).toThrow(SyntaxError);
    for (const times of [2_000, 500_000]) {
      const bytes = Buffer.concat([Buffer.alloc(times, 0x91), Buffer.of(0xc0)]);
      expect(() => new MsgPackJacksonCodec().decode(bytes)).toThrow(SyntaxError);
    }
    expect(new MsgPackJacksonCodec().decode(Buffer.of(0x91, 0x05))).toEqual([5]);

    let payload: unknown[] = [];
    for (let i = 0; i < 2_000; i++) payload = [payload];
    expect(() => text(payload)).toThrow("nested more than 1000 deep");
  });
});

describe("LongCodec", () => {
  const codec = new LongCodec();

  test.each<[string, number | bigint]>([
    ["5", 5],
    ["-5", -5],
    ["+5", 5],
    ["007", 7],
    ["9007199254740991", 2 ** 53 - 1],
    ["9007199254740992", 2n ** 53n],
    ["-9223372036854775808", -(2n ** 63n)],
  ])("reads what Java's Long.valueOf reads: %s", (decimal, value) => {
    expect(codec.decode(Buffer.from(decimal))).toBe(value);
  });

  test.each(["", " 5", "5 ", "1.5", "1e3", "0x5", "--5", "5n", "٥", "9223372036854775808"])(
    "throws for %j",
    (decimal) => {
      expect(() => codec.decode(Buffer.from(decimal))).toThrow(SyntaxError);
    },
  );

  test.each([1.5, NaN, Infinity, 2 ** 53, 2n ** 63n, -(2n ** 63n) - 1n])(
    "refuses what is no whole number of 64 bits: %s",
    (payload) => {
      expect(() => codec.encode(payload)).toThrow(RangeError);
    },
  );

  test.each(["5", null, undefined, true, {}])("takes numbers only, not %j", (payload) => {
    expect(() => codec.encode(payload as never)).toThrow("LongCodec takes whole numbers");
  });
});

describe("Kryo5Codec", () => {
  const codec = new Kryo5Codec<never>();
  const encode = (payload: unknown) => Buffer.from(codec.encode(payload as never)).toString("hex");

  test("says what to do about objects, both ways", () => {
    const remedy = 'for objects use TypedJsonJacksonCodec in Java and "json" in Node';
    expect(() => encode({ a: 1 })).toThrow(remedy);
    expect(() => encode([1])).toThrow(remedy);
    // HashMap {a:1}
    const map = "01006a6176612e7574696c2e486173684d61f0020382610202";
    expect(() => codec.decode(Buffer.from(map, "hex"))).toThrow(remedy);
  });

  test.each([
    ["a text that is cut off", "0368"],
    ["a counted text that is cut off", "03856161"],
    ["a text longer than the bytes", "03ffffffff0f61"],
    ["a malformed character", "0382c361"],
    ["a continuation alone", "038280"],
    ["a character of four bytes", "0383f09f9880"],
    ["a number that never ends", "02ffffffffffff"],
    ["a number of more than 32 bits", "02ffffffff1f"],
    ["a long that is cut off", "09ffff"],
    ["a double that is cut off", "0a00000000"],
    ["a boolean that is none", "0502"],
    ["a class that is referred to", "0101"],
    ["a class without a name", "010080"],
    ["bytes that are cut off", "01005bc20401"],
    ["an empty BigInteger", "01006a6176612e6d6174682e426967496e74656765f201"],
    ["a date out of range", "01006a6176612e7574696c2e446174e5ffffffffffffff7f"],
    ["more behind the value", "020a0a"],
    ["an unknown class", "0b"],
    ["nothing at all", ""],
  ])("throws for %s", (_, hex) => {
    expect(() => codec.decode(Buffer.from(hex, "hex"))).toThrow(SyntaxError);
  });

  test.each<[string, unknown, string]>([
    ["java.lang.Byte", 128, "more than 8 bits"],
    ["java.lang.Short", 1.5, "a whole number"],
    ["java.lang.Integer", 2 ** 31, "more than 32 bits"],
    ["java.lang.Long", 2n ** 63n, "more than 64 bits"],
    ["java.lang.Character", "ab", "one UTF-16 unit"],
    ["java.lang.Double", "5", "takes a number, got string"],
    ["java.util.UUID", "x", "32 hexadecimal digits"],
    ["java.util.Date", new Date(NaN), "invalid"],
    ["java.util.HashMap", {}, "carries scalars only"],
  ])("refuses a %s that is none", (javaClass, value, message) => {
    expect(() => encode(new JavaValue(javaClass, value))).toThrow(message);
  });

  test("reads bytes that do not share memory with the reply", () => {
    const reply = Buffer.from("01005bc204010203", "hex");
    const payload = codec.decode(reply);
    reply.fill(0);
    expect(payload).toEqual(Buffer.from([1, 2, 3]));
  });
});
