import type { Codec } from "./codec.ts";
import { parseJson, stringifyJson } from "./json-text.ts";
import { UnwritableError } from "./unwritable-error.ts";
import { decodeUtf8 } from "./utf8.ts";

/**
 * JSON text in UTF-8, as Redisson's `TypedJsonJacksonCodec` reads and writes it.
 *
 * Follows the rules of `JSON.stringify`. A property that is `undefined`, a function or a symbol is left out; in an
 * array it becomes `null`, as do `NaN` and the infinities. Some values change for good: a date becomes text, a `Buffer`
 * an object, a `Map`, `Set`, `Error` or `RegExp` becomes `{}`, and an instance of a class becomes a plain object. (The
 * `msgpack` codec keeps or refuses them.) A payload that is itself `undefined` is written as `null`; one that is a
 * function or a symbol is refused.
 *
 * A `bigint` is written as a number with all its digits, and a number from 2^53 on, where JavaScript's numbers have
 * gaps, with an exponent. So a whole number from 2^53 on that has all its digits, such as Java's longs, is read as a
 * `bigint`.
 */
export const json: Codec = {
  name: "json",
  encode(payload) {
    const text = stringifyJson(payload ?? null);
    if (text === undefined) throw new UnwritableError(`a ${typeof payload} has no JSON form`);
    return Buffer.from(text);
  },
  decode: (bytes) => parseJson(decodeUtf8(bytes)),
};
