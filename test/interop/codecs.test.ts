import { describe, expect, test } from "vitest";
import type { Codec, CodecName } from "../../src/index.ts";
import {
  JavaValue,
  JsonJacksonCodec,
  Kryo5Codec,
  LongCodec,
  MsgPackJacksonCodec,
} from "../../src/adapters/redisson/index.ts";
import { newLine } from "../helpers/delayline.ts";
import { uniqueName } from "../helpers/redis.ts";
import { describeRedisson } from "./describe-redisson.ts";
import { java, type JavaValue as InJava } from "./java-value.ts";
import type { JavaCodec } from "./redisson.ts";

// The codecs of delayline/redisson: what Java reads for a payload of Node, and the reverse.

type Case = readonly [name: string, inNode: unknown, inJava: InJava];

interface Partners {
  readonly node: Codec;
  readonly java: JavaCodec;
  /** Come back unchanged on both sides. */
  readonly both: readonly Case[];
  /** Node offers the first, Java takes the second. */
  readonly toJava: readonly Case[];
  /** Java offers the first, Node takes the second. */
  readonly toNode: readonly Case[];
}

const BEYOND = 2n ** 53n + 1n;
const NOW = 1_755_757_960_123;

const scalars: readonly Case[] = [
  ["a string", "hi", java.string("hi")],
  ["an empty string", "", java.string("")],
  ["Unicode", "é中😀\0", java.string("é中😀\0")],
  ["a number", 5, java.int(5)],
  ["a fraction", 1.5, java.double(1.5)],
  ["a boolean", true, java.boolean(true)],
  ["null", null, null],
  ["2^53 + 1", BEYOND, java.long(BEYOND)],
  ["the least long", -(2n ** 63n), java.long(-(2n ** 63n))],
  ["a BigInteger", 2n ** 64n - 1n, { bigInteger: String(2n ** 64n - 1n) }],
  ["a date", new Date(NOW), { date: String(NOW) }],
  ["a date before 1970", new Date(-1), { date: "-1" }],
];

const bytes: Case = ["bytes", Buffer.of(0, 255), java.bytes(Buffer.of(0, 255))];
const small: Case = ["a small long", 5, java.long(5)];

const trees: readonly Case[] = [
  ["a map", { a: 1, b: "x" }, java.map({ a: java.int(1), b: java.string("x") })],
  ["an empty map", {}, java.map({})],
  [
    "a list",
    ["x", 1, null, BEYOND],
    java.list(java.string("x"), java.int(1), null, java.long(BEYOND)),
  ],
  ["a list of two", ["a", "b"], java.list(java.string("a"), java.string("b"))],
  [
    "a nested map",
    { at: new Date(NOW), list: [[], {}, { raw: Buffer.of(1) }] },
    java.map({
      at: { date: String(NOW) },
      list: java.list(java.list(), java.map({}), java.map({ raw: java.bytes(Buffer.of(1)) })),
    }),
  ],
];

const typed: readonly Case[] = [
  ["a number beyond 32 bits", NOW, java.long(NOW)],
  ["a bigint", 5n, java.long(5)],
  ["a whole Double", new JavaValue("java.lang.Double", 5), { double: "5.0" }],
  ["a Short", new JavaValue("java.lang.Short", -7), { short: "-7" }],
];
const jackson: Pick<Partners, "toJava" | "toNode"> = {
  toJava: [
    ...typed,
    ["a Set", new Set(["a"]), { set: [java.string("a")] }],
    ["null in a map", { a: null }, java.map({ a: null })],
    ["a BigDecimal", new JavaValue("java.math.BigDecimal", 1.5), { bigDecimal: "1.5" }],
  ],
  toNode: [
    small,
    ["a set", ["a"], { set: [java.string("a")] }],
    ["a HashMap", { a: 1 }, { hashMap: [[java.string("a"), java.int(1)]] }],
    ["null in a map, left out", {}, java.map({ a: null })],
    ["a BigDecimal", 1.5, { bigDecimal: "1.5" }],
    [
      "a UUID",
      "00000000-0000-0001-0000-000000000002",
      { uuid: "00000000-0000-0001-0000-000000000002" },
    ],
  ],
};

const allPartners: readonly Partners[] = [
  {
    node: new JsonJacksonCodec(),
    java: "JsonJacksonCodec",
    both: [...scalars, ...trees],
    toJava: [...jackson.toJava, bytes],
    toNode: [...jackson.toNode, ["bytes, as base64", "AP8=", java.bytes(Buffer.of(0, 255))]],
  },
  {
    node: new MsgPackJacksonCodec(),
    java: "MsgPackJacksonCodec",
    both: [...scalars, ...trees, bytes],
    ...jackson,
  },
  {
    node: new Kryo5Codec(),
    java: "Kryo5Codec",
    both: [...scalars, bytes],
    toJava: typed,
    toNode: [small, ["a Float", 1.5, { float: "1.5" }], ["a char", "中", { char: "中" }]],
  },
  {
    node: new LongCodec(),
    java: "LongCodec",
    both: [
      ["a number", -5, java.long(-5)],
      ["2^53 + 1", BEYOND, java.long(BEYOND)],
    ],
    toJava: [],
    toNode: [],
  },
];

describeRedisson("codecs", (redisson) => {
  describe.each(allPartners.map((partners) => [partners.java, partners] as const))(
    "%s",
    (_, { node: codec, java: javaCodec, both, toJava, toNode }) => {
      test.each([...both, ...toJava])(
        "Node offers %s, Java takes it",
        async (_case, inNode, inJava) => {
          const name = uniqueName("codec");
          await newLine().getDelayedQueue(name, { codec }).offer(inNode, 5);
          expect(await redisson().client.queue(name, javaCodec).ready.take()).toEqual(inJava);
        },
      );

      test.each([...both, ...toNode])(
        "Java offers %s, Node takes it",
        async (_case, inNode, inJava) => {
          const name = uniqueName("codec");
          const ready = newLine().getBlockingQueue(name, { codec });
          const { delayed } = redisson().client.queue(name, javaCodec);
          await delayed.offer(inJava, 5);
          expect(await ready.take()).toEqual(inNode);
          await delayed.destroy();
        },
      );
    },
  );

  test.each([
    ["JsonJacksonCodec", new JsonJacksonCodec({ keepTypes: true })],
    ["MsgPackJacksonCodec", new MsgPackJacksonCodec({ keepTypes: true })],
  ] as const)(
    "%s: a value that Node read with its types goes back unchanged",
    async (java_, codec) => {
      const name = uniqueName("codec");
      const sent: InJava = {
        hashMap: [
          [java.string("set"), { set: [java.long(1), java.string("x")] }],
          [java.string("big"), { bigInteger: "5" }],
        ],
      };
      const { ready } = redisson().client.queue(name, java_);
      await ready.put(sent);
      const inNode = newLine().getBlockingQueue(name, { codec });
      await inNode.put(await inNode.take());
      // Byte for byte: Java finds it.
      expect(await ready.contains(sent)).toBe(true);
    },
  );

  test("a Kryo object is refused with the remedy, and the next message is taken", async () => {
    const name = uniqueName("codec");
    const { ready } = redisson().client.queue(name, "Kryo5Codec");
    await ready.put(java.map({ a: java.int(1) }));
    await ready.put(java.string("next"));
    const queue = newLine().getBlockingQueue(name, { codec: new Kryo5Codec() });
    await expect(queue.take()).rejects.toThrow("for objects use TypedJsonJacksonCodec in Java");
    expect(await queue.take()).toBe("next");
  });

  test.each([
    ["StringCodec", "string", "a"],
    ["TypedJsonJacksonCodec", "json", { a: [1, "x", BEYOND] }],
    ["TypedJsonJacksonCodec+MessagePack", "msgpack", { a: [1, "x", 1.5] }],
    ["JsonJacksonCodec", new JsonJacksonCodec(), { a: [1, "x😀", BEYOND, new Date(NOW)] }],
    ["MsgPackJacksonCodec", new MsgPackJacksonCodec(), { a: [1, "x😀", BEYOND, new Date(NOW)] }],
    ["Kryo5Codec", new Kryo5Codec(), "x😀"],
    ["LongCodec", new LongCodec(), BEYOND],
  ] as const)(
    "%s: Java finds and removes by value what Node put",
    async (java_, codec, payload) => {
      const name = uniqueName("codec");
      const values: Record<string, InJava> = {
        StringCodec: java.string("a"),
        TypedJsonJacksonCodec: java.map({
          a: java.list(java.int(1), java.string("x"), java.long(BEYOND)),
        }),
        "TypedJsonJacksonCodec+MessagePack": java.map({
          a: java.list(java.int(1), java.string("x"), java.double(1.5)),
        }),
        Kryo5Codec: java.string("x😀"),
        LongCodec: java.long(BEYOND),
      };
      const value =
        values[java_] ??
        java.map({
          a: java.list(java.int(1), java.string("x😀"), java.long(BEYOND), { date: String(NOW) }),
        });
      await newLine()
        .getBlockingQueue(name, { codec: codec as CodecName | Codec })
        .put(payload);
      const { ready } = redisson().client.queue(name, java_);
      expect(await ready.contains(value)).toBe(true);
      expect(await ready.remove(value)).toBe(true);
    },
  );
});
