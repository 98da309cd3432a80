import { pack } from "msgpackr";
import { describe, expect, test } from "vitest";
import { escapeControl, readablePayload } from "../../../src/tools/view/text.ts";

describe("a payload", () => {
  test.each([
    ["JSON", Buffer.from('{"a":[1,null]}'), "json", '{"a":[1,null]}'],
    ["a long in JSON", Buffer.from("9007199254740993"), "json", "9007199254740993"],
    ["MessagePack", pack({ a: [1, "é"] }), "msgpack", '{"a":[1,"é"]}'],
    ["bytes in MessagePack", pack({ a: Buffer.from([1, 255]) }), "msgpack", '{"a":"0x01ff"}'],
    ["text", Buffer.from("Grüße, {you}"), "text", "Grüße, {you}"],
    ["nothing", Buffer.alloc(0), "text", ""],
    ["bytes", Buffer.from([0xc1, 0xff, 0x00]), "hex", "c1ff00"],
  ])("%s", (_, payload, format, text) => {
    expect(readablePayload(payload)).toEqual({ format, text });
  });

  test("of text cannot act on a terminal, or change its direction", () => {
    const { text } = readablePayload(Buffer.from("\u001b[31mred\u202egnp.exe\r\nnext\u2028"));
    expect(text).toBe("\\u{1b}[31mred\\u{202e}gnp.exe\\r\\nnext\\u{2028}");
  });

  test("of JSON or MessagePack cannot, either", () => {
    const wild = "\u009b2J\u2066\u200f";
    for (const payload of [Buffer.from(JSON.stringify(wild)), pack({ wild })]) {
      expect(readablePayload(payload).text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    }
  });
});

test("harmless text is not escaped", () => {
  expect(escapeControl("Ærø 日本語 😀\ud800")).toBe("Ærø 日本語 😀\ufffd");
});
