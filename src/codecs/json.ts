import type { Codec } from "./codec.ts";
import { parseJson, stringifyJson } from "./json-text.ts";
import { decodeUtf8 } from "./utf8.ts";

/**
 * JSON text in UTF-8, as Redisson's `TypedJsonJacksonCodec` reads and writes it.
 *
 * The rules are those of `JSON.stringify`: a property that is `undefined`, a function or a symbol is left
 * out, and such an item of an array becomes `null`; so do `NaN` and the infinities. Dates become text, a
 * `Buffer` an object, a `Map`, a `Set`, an `Error` or a `RegExp` `{}`, an instance of a class a plain object;
 * none of them comes back as it was. (The `msgpack` codec keeps or refuses them.) A payload that is
 * `undefined` as a whole is written as `null`, a function or a symbol is refused. A `bigint` is written as a number. A
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
