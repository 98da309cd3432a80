import { expect, test } from "vitest";
import { findCycle } from "../../../src/codecs/cycle.ts";
import { EncodeError, type Codec } from "../../../src/index.ts";
import { resolveCodec } from "../../../src/codecs/built-in.ts";
import { Payloads } from "../../../src/queue/payloads.ts";
import { queueSettings } from "../../../src/queue/options.ts";

function order(): Record<string, unknown> {
  const made: Record<string, unknown> = { id: 7, lines: [{}] };
  (made["lines"] as object[])[0] = { sku: "a", of: made };
  return made;
}

test("a cycle is named by its places", () => {
  const made = order();
  expect(findCycle(made)).toBe("payload.lines[0].of is payload itself");
  expect(findCycle([1, { made }])).toBe("payload[1].made.lines[0].of is payload[1].made itself");
  const map: Record<string, unknown> = {};
  map["alice@example.org"] = { map };
  expect(findCycle(map)).toBe("payload[...].map is payload itself");
});

test("what is shared is no cycle", () => {
  const shared = { a: 1 };
  expect(findCycle([shared, shared, { shared }])).toBeUndefined();
  // 2^60 paths lead to the innermost.
  let doubled: object = {};
  for (let i = 0; i < 60; i++) doubled = { a: doubled, b: doubled };
  expect(findCycle(doubled)).toBeUndefined();
  expect(findCycle(null)).toBeUndefined();
  expect(findCycle(Buffer.alloc(10))).toBeUndefined();
});

test("what is nested deeper than the stack is not searched to its end", () => {
  let deep: object = {};
  for (let i = 0; i < 100_000; i++) deep = { deep };
  expect(findCycle(deep)).toBeUndefined();
});

const codecs: readonly [string, Codec][] = [
  ["msgpack", resolveCodec("msgpack")],
  ["json", resolveCodec("json")],
  [
    "mine",
    {
      name: "mine",
      encode: (value) => Buffer.from(JSON.stringify(value)),
      decode: () => null,
    },
  ],
];

test.each(codecs)("an EncodeError of codec %s says where the cycle is", (name, codec) => {
  const queue = { name: "orders", report: () => {}, quarantine: async () => true };
  const payloads = new Payloads(queue, queueSettings({ codec }));
  const encode = () => payloads.encode(order());
  expect(encode).toThrow(EncodeError);
  expect(encode).toThrow(
    `cannot encode a payload for queue "orders" with codec "${name}": payload.lines[0].of is payload itself`,
  );
});

test.each([
  ["string", 5, "the string codec takes strings, got number"],
  ["bytes", "x", "the bytes codec takes a Uint8Array, got string"],
  ["json", () => {}, "a function has no JSON form"],
] as const)("an EncodeError of codec %s says what it takes", (codec, payload, why) => {
  const queue = { name: "orders", report: () => {}, quarantine: async () => true };
  const payloads = new Payloads<unknown>(queue, queueSettings<unknown>({ codec }));
  expect(() => payloads.encode(payload)).toThrow(`with codec "${codec}": ${why}`);
});
