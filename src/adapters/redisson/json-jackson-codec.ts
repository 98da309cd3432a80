import type { Codec } from "../../codecs/codec.ts";
import { parseJson } from "../../codecs/json-text.ts";
import { decodeUtf8 } from "../../codecs/utf8.ts";
import { JavaTypes, type JacksonOptions, type Tree } from "./java-types.ts";

/**
 * Redisson's `JsonJacksonCodec`: JSON that contains Java's class names.
 *
 * Writes objects as `java.util.LinkedHashMap` (or as `classOf` says), arrays as `ArrayList`, `Set` as `LinkedHashSet`,
 * `Date` as `java.util.Date`, `bigint` as `Long` (`BigInteger` beyond 64 bits), bytes as `byte[]`. The value of a
 * number decides whether it is an int, a long or a double; a bean's field that is declared `Long` needs a `bigint`. For
 * other classes use `JavaValue`.
 *
 * Reads all of these without the class names. Whole numbers from 2^53 on are read as `bigint`. Values that Java writes
 * without a class are read as they are: `byte[]` as base64 text, enums as their names.
 */
export class JsonJacksonCodec<T = unknown> implements Codec<T> {
  readonly name = "JsonJacksonCodec";
  readonly #types: JavaTypes;

  /** @throws {TypeError} if an option is not legal. */
  constructor(options: JacksonOptions = {}) {
    this.#types = new JavaTypes(options, true);
  }

  /** @throws {TypeError | RangeError} if a value has no Java form: functions, cycles, `@class`. */
  encode(payload: T): Uint8Array {
    return Buffer.from(jsonText(this.#types.toJava(payload)));
  }

  decode(bytes: Buffer): T {
    return this.#types.fromJava(parseJson(decodeUtf8(bytes))) as T;
  }
}

/** JSON as Jackson writes it, since Redisson's `remove` and `contains` compare bytes. */
function jsonText(tree: Tree): string {
  if (typeof tree === "string") return quoted(tree);
  if (typeof tree === "number") return numberText(tree);
  if (tree instanceof Map) {
    const fields = Array.from(tree as ReadonlyMap<string, Tree>, ([key, value]) => {
      return `${quoted(key)}:${jsonText(value)}`;
    });
    return `{${fields.join(",")}}`;
  }
  return Array.isArray(tree) ? `[${tree.map(jsonText).join(",")}]` : `${tree as boolean | null}`;
}

/** Whole numbers up to 2^53 as such; all others in a form that Java reads as a double. */
function numberText(value: number): string {
  if (Object.is(value, -0)) return "-0.0";
  return Number.isInteger(value) && !Number.isSafeInteger(value)
    ? value.toExponential()
    : String(value);
}

function quoted(text: string): string {
  // Control characters, and each surrogate by itself, paired or not.
  // oxlint-disable-next-line no-control-regex
  return `"${text.replaceAll(/["\\\u0000-\u001f\ud800-\udfff]/g, escaped)}"`;
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\f": "\\f",
  "\r": "\\r",
};

function escaped(unit: string): string {
  const code = unit.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  return SHORT_ESCAPES[unit] ?? `\\u${code}`;
}
