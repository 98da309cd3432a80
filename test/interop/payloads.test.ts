import { describe, expect, test } from "vitest";
import type { CodecName } from "../../src/index.ts";
import { newLine } from "../helpers/delayline.ts";
import { uniqueName } from "../helpers/redis.ts";
import { describeRedisson } from "./describe-redisson.ts";
import { java, type JavaValue } from "./java-value.ts";
import type { JavaCodec } from "./redisson.ts";

// What Java reads for a payload of Node, and the reverse.

type Case = readonly [name: string, inNode: unknown, inJava: JavaValue];

interface Partners {
  readonly node: CodecName;
  readonly java: JavaCodec;
  /** Come back unchanged on both sides. */
  readonly both: readonly Case[];
  /** Node offers the first, Java takes the second. */
  readonly toJava?: readonly Case[];
  /** Java offers the first, Node takes the second. */
  readonly toNode?: readonly Case[];
}

const UNICODE = "é中😀\0 ";
const BEYOND = 2n ** 53n + 1n;

const order = {
  id: 7,
  paid: false,
  lines: [
    { sku: UNICODE, price: 2.5 },
    { sku: "", tags: [[], {}] },
  ],
};

const orderInJava = java.map({
  id: java.int(7),
  paid: java.boolean(false),
  lines: java.list(
    java.map({ sku: java.string(UNICODE), price: java.double(2.5) }),
    java.map({ sku: java.string(""), tags: java.list(java.list(), java.map({})) }),
  ),
});

/** The values that JSON and MessagePack share. */
const trees: readonly Case[] = [
  ["a string", "hi", java.string("hi")],
  ["an empty string", "", java.string("")],
  ["Unicode", UNICODE, java.string(UNICODE)],
  ["a number", 5, java.int(5)],
  ["a negative number", -5, java.int(-5)],
  ["a fraction", 1.5, java.double(1.5)],
  ["true", true, java.boolean(true)],
  ["false", false, java.boolean(false)],
  ["null", null, null],
  ["a map", { a: 1, b: "x" }, java.map({ a: java.int(1), b: java.string("x") })],
  ["an empty map", {}, java.map({})],
  ["a list", [1, "x", null], java.list(java.int(1), java.string("x"), null)],
  ["an empty list", [], java.list()],
  ["a nested order", order, orderInJava],
];

const note = java.map({ id: java.int(7), note: null });
const withNull: readonly Case[] = [["a null in a map", { id: 7, note: null }, note]];
// The codec's ObjectMapper omits nulls when it writes.
const withoutNull: readonly Case[] = [["a null in a map, left out", { id: 7 }, note]];

const allPartners: readonly Partners[] = [
  {
    node: "string",
    java: "StringCodec",
    both: [
      ["a string", "hi", java.string("hi")],
      ["an empty string", "", java.string("")],
      ["Unicode", UNICODE, java.string(UNICODE)],
    ],
    toNode: [
      ["a Long", "9007199254740993", java.long(BEYOND)],
      ["a Boolean", "true", java.boolean(true)],
    ],
  },
  {
    node: "json",
    java: "TypedJsonJacksonCodec",
    both: [
      ...trees,
      ["a number of 53 bits", 2 ** 53 - 1, java.long(2 ** 53 - 1)],
      ["2^53 + 1", BEYOND, java.long(BEYOND)],
    ],
    toJava: [
      ...withNull,
      ["a number beyond 53 bits, as a Double", 2 ** 60, { double: "1.15292150460684698E18" }],
    ],
    toNode: [...withoutNull, ["bytes, as base64", "AP+A", java.bytes(Buffer.of(0, 255, 128))]],
  },
  {
    node: "msgpack",
    java: "TypedJsonJacksonCodec+MessagePack",
    both: [
      ...trees,
      ["2^53 + 1", BEYOND, java.long(BEYOND)],
      ["bytes", Buffer.of(0, 255, 128), java.bytes(Buffer.of(0, 255, 128))],
      ["no bytes", Buffer.alloc(0), java.bytes(Buffer.alloc(0))],
    ],
    toJava: [
      ...withNull,
      ["a number above 2^32, as a Double", 2 ** 32 + 1, { double: "4.294967297E9" }],
    ],
    toNode: [...withoutNull, ["a Long", 2 ** 32 + 1, java.long(2 ** 32 + 1)]],
  },
  {
    node: "bytes",
    java: "ByteArrayCodec",
    both: [
      ["bytes", Buffer.of(0, 255, 128), java.bytes(Buffer.of(0, 255, 128))],
      ["no bytes", Buffer.alloc(0), java.bytes(Buffer.alloc(0))],
    ],
  },
];

describeRedisson("payloads", (redisson) => {
  describe.each(allPartners)("$node and $java", (partners) => {
    const { both, toJava = [], toNode = [] } = partners;

    test.each([...both, ...toJava])("Node offers %s, Java takes it", async (_, inNode, inJava) => {
      const name = uniqueName("payload");
      const line = newLine({ codec: partners.node });
      await line.getDelayedQueue(name).offer(inNode, 5);
      const { ready } = redisson().client.queue(name, partners.java);
      expect(await ready.take()).toEqual(inJava);
    });

    test.each([...both, ...toNode])("Java offers %s, Node takes it", async (_, inNode, inJava) => {
      const name = uniqueName("payload");
      const line = newLine({ codec: partners.node });
      const { delayed } = redisson().client.queue(name, partners.java);
      await delayed.offer(inJava, 5);
      expect(await line.getBlockingQueue(name).take()).toEqual(inNode);
      await delayed.destroy();
    });
  });
});
