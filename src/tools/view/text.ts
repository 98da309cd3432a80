import { types } from "node:util";
import { resolveCodec, stringifyJson } from "../../inside.ts";

/**
 * Makes text safe to print on a terminal. Control characters (including line breaks), characters that change the
 * direction of text (such as U+202E) and invisible characters become `\u{...}` escapes. Lone surrogates become U+FFFD.
 */
export function escapeControl(text: string): string {
  return text.toWellFormed().replaceAll(TRICKS, (character) => {
    const short = SHORT.get(character);
    return short ?? `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
  });
}

// Control, format (including direction marks), line separator, paragraph separator, private use and unassigned
// characters.
const TRICKS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu;

const SHORT = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

/** A payload in a form that people can read. */
export interface ReadablePayload {
  /** The first format that fits the bytes. Bytes do not say what they are, so it may be the wrong one. */
  readonly format: "json" | "msgpack" | "text" | "hex";
  /** One line: the value as JSON, the text, or the bytes in hex. Safe to print on a terminal. */
  readonly text: string;
}

/**
 * Makes a payload readable, whatever codec wrote it: as JSON, MessagePack, text, or else hex. The text is escaped for
 * terminals, not for HTML.
 */
export function readablePayload(payload: Uint8Array): ReadablePayload {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  const text = attempt(() => resolveCodec<string>("string").decode(bytes));
  if (text !== undefined && text.length > 0) {
    const json = attempt(() => stringifyJson(resolveCodec("json").decode(bytes)));
    if (json !== undefined) return { format: "json", text: escapeControl(json) };
    // A single byte below 0x80 is valid MessagePack too, but more likely text.
    if (!UNPRINTABLE.test(text)) return { format: "text", text: escapeControl(text) };
  }
  const value = attempt(() => ({ is: resolveCodec("msgpack").decode(bytes) }));
  if (value !== undefined) {
    const packed = attempt(() => stringifyJson(toJsonValue(value.is)));
    if (packed !== undefined) return { format: "msgpack", text: escapeControl(packed) };
  }
  if (text !== undefined) return { format: "text", text: escapeControl(text) };
  return { format: "hex", text: bytes.toString("hex") };
}

/** Replaces what JSON cannot represent: bytes by hex, Maps by objects, Sets by arrays, undefined by null. */
function toJsonValue(value: unknown): unknown {
  if (types.isUint8Array(value)) return `0x${Buffer.from(value).toString("hex")}`;
  if (types.isMap(value)) return Object.fromEntries(Array.from(value, toJsonPair));
  if (types.isSet(value)) return Array.from(value, toJsonValue);
  if (Array.isArray(value)) return value.map(toJsonValue);
  if (typeof value === "object" && value !== null && !types.isDate(value)) {
    return Object.fromEntries(Object.entries(value).map(toJsonPair));
  }
  return value === undefined ? null : value;
}

function toJsonPair([name, value]: readonly [unknown, unknown]): [string, unknown] {
  return [String(name), toJsonValue(value)];
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Control characters that do not occur in text. */
const UNPRINTABLE = /(?![\t-\r])\p{Cc}/u;

/** A word of a command, or an option with its value. */
export type CommandWord =
  string | readonly [option: `--${string}`] | readonly [option: `--${string}`, value: string];

/** A word for a POSIX shell, in single quotes if it holds any character that a shell might interpret. */
export function shellWord(word: string): string {
  return /^[\w.:@/-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
