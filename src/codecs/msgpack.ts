import { types } from "node:util";
import { C1, Packr } from "msgpackr";
import type { Codec } from "./codec.ts";
import { ForeignTypeError, readMessagePack } from "./message-pack-reader.ts";
import { plainData } from "./plain-data.ts";
import { UnreadableError } from "./unreadable-error.ts";

// Plain MessagePack that any decoder reads: no records extension, the smallest map header, nil for undefined.
// copyBuffers: a decoded Buffer must not share memory with the reply that held it. structuredClone: no references, by
// which a payload could contain itself.
const packr = new Packr({
  useRecords: false,
  variableMapSize: true,
  encodeUndefinedAsNil: true,
  copyBuffers: true,
  structuredClone: false,
  // Read 64-bit integers, such as Java's longs, as numbers if a number holds them exactly, otherwise as bigints.
  // (msgpackr supports "auto"; its types lack it.)
  int64AsType: "auto" as "number",
});

/**
 * MessagePack, the default codec. Any MessagePack decoder reads it, in Redisson `TypedJsonJacksonCodec` over a
 * `MessagePackFactory`.
 *
 * Takes everything that JSON takes, and also `Buffer`, `Uint8Array` (read as a `Buffer`), `Date`, `NaN`, infinities and
 * `bigint` (64 bits). A whole number above 2^32 is written as a float64, which is exact up to 2^53. A `bigint` is read
 * as a number if a number holds it exactly.
 *
 * As in JSON, a property that is `undefined` is left out, `undefined` elsewhere is read as `null`, -0 is read as 0, and
 * an object with a `toJSON` is written as the value that it returns.
 *
 * A value that would be read as something else is refused, and the error names its path in the payload: functions and
 * symbols, `Map`, `Set`, `Error`, `RegExp`, `Promise` and all other instances of classes without `toJSON`, invalid
 * dates, text or names of properties that are not well-formed Unicode, and a property `__proto__`.
 *
 * Bytes in which a text is not UTF-8 are refused, too.
 */
export const msgpack: Codec = {
  name: "msgpack",
  encode(payload) {
    const data = plainData(payload);
    try {
      return packr.pack(data);
    } catch (error) {
      // msgpackr's error quotes the number, and a payload must not reach a log.
      const isBigint = error instanceof RangeError && error.message.includes("too large to fit");
      throw isBigint ? new RangeError("a bigint has more than 64 bits") : error;
    }
  },
  decode: unpackMessage,
};

/**
 * Reads bytes that hold exactly one MessagePack value, or one of msgpackr's own types.
 *
 * @throws {UnreadableError} if they hold anything else; the error does not quote them.
 */
export function unpackMessage(bytes: Buffer): unknown {
  try {
    return readMessagePack(bytes);
  } catch (error) {
    if (!(error instanceof ForeignTypeError)) throw unreadable();
  }
  try {
    return withoutOddities(packr.unpack(bytes));
  } catch {
    throw unreadable();
  }
}

function unreadable(): UnreadableError {
  return new UnreadableError("the bytes are not MessagePack, or nested too deeply");
}

/**
 * Replaces `undefined`, which msgpackr's own extension in the bytes of other writers yields, by null; and throws where
 * msgpackr returns a strange value instead of failing: an object for the byte 0xc1, an invalid date.
 */
function withoutOddities(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value !== "object" || value === null) return value;
  if (value === C1) throw new UnreadableError("0xc1 is not MessagePack");
  if (types.isDate(value)) {
    if (Number.isNaN(value.getTime())) throw new UnreadableError("not a MessagePack timestamp");
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) value[index] = withoutOddities(item);
  } else if (types.isSet(value)) {
    const items = [...value].map(withoutOddities);
    value.clear();
    for (const item of items) value.add(item);
  } else if (Object.getPrototypeOf(value) === Object.prototype) {
    const object = value as Record<string, unknown>;
    for (const key of Object.keys(object)) object[key] = withoutOddities(object[key]);
  }
  return value;
}
