import type { Codec } from "./codec.ts";
import { parseJson, stringifyJson } from "./json-text.ts";
import { decodeUtf8 } from "./utf8.ts";

/**
 * JSON text in UTF-8, as Redisson's `TypedJsonJacksonCodec` reads and writes it.
 *
 * `undefined` is written as `null`; what JSON drops is dropped. A `bigint` is written as a number. A
 * number from 2^53 on, where JavaScript's have gaps, is written with an exponent; one that has all its
 * digits, as Java's longs have, comes as a `bigint`.
 */
export const json: Codec = {
  name: "json",
  encode(payload) {
    const text = stringifyJson(payload ?? null);
    if (text === undefined) throw new TypeError(`a ${typeof payload} has no JSON form`);
    return Buffer.from(text);
  },
  decode: (bytes) => parseJson(decodeUtf8(bytes)),
};
