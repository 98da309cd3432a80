import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import {
  JavaValue,
  JsonJacksonCodec,
  Kryo5Codec,
  MsgPackJacksonCodec,
} from "../../../src/adapters/redisson/index.ts";
import { causeOf } from "../../../src/cause.ts";
import { isBranded } from "../../../src/codecs/brand.ts";
import { msgpack } from "../../../src/codecs/msgpack.ts";
import {
  DecodeError,
  EncodeError,
  HandlerError,
  RedisError,
  ScheduleError,
} from "../../../src/errors.ts";
import { isConnectionCut, messageOf } from "../../../src/failure.ts";
import { checkInstant } from "../../../src/queue/checks.ts";
import { isError, textField, textOfThrown } from "../../../src/values/thrown.ts";

// Values of another realm, as in Jest or vm; thrown values that cannot be looked at; instances of another copy.

/** Evaluates an expression in another realm. */
const abroad = (expression: string): unknown => runInNewContext(`(${expression})`);

const { proxy: revoked, revoke } = Proxy.revocable({}, {});
revoke();

/** An error with a property that throws. */
function trap(name: string): Error {
  return Object.defineProperty(new Error("x"), name, {
    get() {
      throw new Error(`no ${name}`);
    },
  });
}

test("src asks for built-in classes by what a value is, not by the realm that it is of", () => {
  const src = new URL("../../../src/", import.meta.url).pathname;
  const uses = readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith("tools/"))
    .flatMap((file) =>
      readFileSync(join(src, file), "utf8")
        .split("\n")
        .filter((line) => /instanceof (Error|Date|Map|Set|RegExp|ArrayBuffer|Promise)\b/.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
  expect(uses.toSorted()).toEqual([
    // Trees of our own, and errors of our own; and a fast look that others follow.
    "adapters/redisson/json-jackson-codec.ts: if (tree instanceof Map) {",
    "adapters/redisson/message-pack.ts: return tree instanceof Map;",
    "adapters/testing/find-server.ts: return error instanceof Error ? error.message : String(error);",
    "codecs/plain-data.ts: return value instanceof Uint8Array || (value instanceof Date && !Number.isNaN(value.getTime()));",
    'values/thrown.ts: value instanceof Error || Object.prototype.toString.call(value) === "[object DOMException]"',
  ]);
});

test("dates and bytes of another realm are written as those of this one", () => {
  const payload = { at: abroad("new Date(1000)"), raw: abroad("new Uint8Array([1, 2])") };
  for (const codec of [msgpack, new JsonJacksonCodec(), new MsgPackJacksonCodec()]) {
    expect(codec.decode(Buffer.from(codec.encode(payload))), codec.name).toEqual({
      at: new Date(1000),
      raw: Buffer.of(1, 2),
    });
  }
  const kryo = new Kryo5Codec();
  expect(kryo.decode(Buffer.from(kryo.encode(payload.at as Date)))).toEqual(new Date(1000));
  expect(checkInstant("at", abroad("new Date(1800000000000)"))).toBe(1_800_000_000_000);
});

test.each([
  ["an Error", new Error("card declined"), "an instance of Error"],
  ["a Promise", Promise.resolve(1), "a Promise (await it)"],
  ["a RegExp", /x/, "an instance of RegExp"],
  ["an ArrayBuffer", new ArrayBuffer(3), "an instance of ArrayBuffer"],
  ["Headers", new Headers({ a: "b" }), "an instance of Headers"],
  ["a WeakMap", new WeakMap(), "an instance of WeakMap"],
  ["an instance", new Intl.Collator(), "an instance of Collator"],
  ["an Error of another realm", abroad("new Error('x')"), "an instance of Error"],
  ["a Promise of another realm", abroad("Promise.resolve(1)"), "a Promise (await it)"],
])("Jackson's codecs refuse %s, whose content a map would drop", (_, value, kind) => {
  for (const codec of [new JsonJacksonCodec(), new MsgPackJacksonCodec()]) {
    expect(() => codec.encode({ value })).toThrow(`${kind} has no Java form`);
  }
});

test("a Map and a Set of another realm keep their content, and classOf names instances", () => {
  const codec = new JsonJacksonCodec({
    classOf: (value) => ("total" in value ? "com.acme.Order" : undefined),
  });
  const values = [abroad("new Map([['a', 1]])"), abroad("new Set([1])"), abroad("({ a: 1 })")];
  expect(codec.decode(Buffer.from(codec.encode(values)))).toEqual([{ a: 1 }, [1], { a: 1 }]);
  const order = new (class {
    readonly total = 5;
  })();
  expect(Buffer.from(codec.encode(order)).toString()).toBe('{"@class":"com.acme.Order","total":5}');
  const always = new JsonJacksonCodec({ classOf: () => "com.acme.Order" });
  expect(() => always.encode(Promise.resolve(order))).toThrow("a Promise (await it)");
});

test("an error is known by what it is, and a DOMException is one", () => {
  expect(
    [abroad("new TypeError('x')"), new DOMException("x"), trap("message")].every(isError),
  ).toBe(true);
  expect([revoked, {}, null, "x", { message: "x" }].some(isError)).toBe(false);
  expect(textOfThrown(abroad("new TypeError('declined')"))).toBe("declined");
  expect(isConnectionCut(abroad("Object.assign(new Error('x'), { code: 'ECONNRESET' })"))).toBe(
    true,
  );
  const both = abroad("new AggregateError([new Error('refused'), new Error('timed out')])");
  expect(messageOf(both as Error)).toBe("refused; timed out");
  expect(new RedisError("cannot take", abroad("new Error('NOAUTH x')")).message).toContain(
    "NOAUTH",
  );
});

test.each([
  ["a message that throws", trap("message"), "Error"],
  [
    "a name and a message that throw",
    Object.defineProperty(trap("message"), "name", { get: () => trap("name").name }),
    "Error",
  ],
  ["a cause that throws", trap("cause"), "x"],
  ["a stack that throws", trap("stack"), "x"],
  ["a revoked proxy", revoked, "the handler threw object"],
  ["undefined", undefined, "the handler threw undefined"],
])("%s is read without throwing", (_, thrown, text) => {
  expect(textOfThrown(thrown)).toBe(text);
  expect(causeOf(new HandlerError("orders", thrown))).toBeUndefined();
  expect(new EncodeError("orders", "mine", thrown).message).toContain("cannot encode");
  expect(new DecodeError("orders", "mine", Buffer.of(1), thrown).message).toContain(
    "cannot decode",
  );
  expect(new RedisError("cannot take", thrown).message).toContain("cannot take");
  expect(new ScheduleError("orders", "nightly", thrown).message).toContain("cannot plan");
  expect(textField(thrown, "code")).toBeUndefined();
});

test("instances of another copy of the library are known by their brand", async () => {
  const there = "../../../src/adapters/redisson/java-value.ts?copy";
  const { JavaValue: Other } = (await import(there)) as { JavaValue: typeof JavaValue };
  expect(new Other("java.lang.Double", 5)).not.toBeInstanceOf(JavaValue);
  const codec = new JsonJacksonCodec();
  expect(codec.encode(new Other("java.lang.Double", 5))).toEqual(
    codec.encode(new JavaValue("java.lang.Double", 5)),
  );
  expect([isBranded(revoked, "JavaValue"), isBranded({}, "JavaValue")]).toEqual([false, false]);
});
