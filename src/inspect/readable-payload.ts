import { resolveCodec } from "../codecs/built-in.ts";
import { decodeUtf8 } from "../codecs/utf8.ts";
import { stringifyJson } from "../codecs/json-text.ts";
import { escapeControl } from "./escape-control.ts";

/** A payload as a person can read it. */
export interface ReadablePayload {
  /** What its bytes were taken for. The bytes do not tell: it is what fits first. */
  readonly format: "json" | "msgpack" | "text" | "hex";
  /** One line: the value as JSON, the text, or the bytes in hex. Nothing in it acts on a terminal. */
  readonly text: string;
}

/**
 * Makes a payload readable, whatever codec wrote it: JSON, MessagePack, UTF-8, or else bytes. Control characters and those
 * that change the direction of text are escaped, so that the text can be printed to a terminal. Pages have to put it
 * in as text, not as HTML.
 */
export function readablePayload(payload: Uint8Array): ReadablePayload {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  const text = attempt(() => decodeUtf8(bytes));
  if (text !== undefined && text.length > 0) {
    const json = attempt(() => stringifyJson(resolveCodec("json").decode(bytes)));
    if (json !== undefined) return { format: "json", text: escapeControl(json) };
    // One byte below 0x80 is MessagePack, too, but a text it is rather.
    if (!UNPRINTABLE.test(text)) return { format: "text", text: escapeControl(text) };
  }
  const value = attempt(() => ({ is: resolveCodec("msgpack").decode(bytes) }));
  if (value !== undefined) {
    const packed = attempt(() => stringifyJson(shown(value.is)));
    if (packed !== undefined) return { format: "msgpack", text: escapeControl(packed) };
  }
  if (text !== undefined) return { format: "text", text: escapeControl(text) };
  return { format: "hex", text: bytes.toString("hex") };
}

/** What JSON has no form for, as something that it has one for. */
function shown(value: unknown): unknown {
  if (value instanceof Uint8Array) return `0x${Buffer.from(value).toString("hex")}`;
  if (value instanceof Map) return Object.fromEntries(Array.from(value, shownPair));
  if (value instanceof Set) return Array.from(value, shown);
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value === "object" && value !== null && !(value instanceof Date)) {
    return Object.fromEntries(Object.entries(value).map(shownPair));
  }
  return value === undefined ? null : value;
}

function shownPair([name, value]: readonly [unknown, unknown]): [string, unknown] {
  return [String(name), shown(value)];
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Control characters that no text has. */
const UNPRINTABLE = /(?![\t-\r])\p{Cc}/u;
