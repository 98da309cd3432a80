import { C1, Packr } from "msgpackr";
import type { Codec } from "./codec.ts";
import { plainData } from "./plain-data.ts";
import { UnreadableError } from "./unreadable-error.ts";

// Plain MessagePack for others to read: no records extension, the smallest map header, nil for
// undefined. copyBuffers: a decoded Buffer must not share memory with the reply it came in.
// structuredClone: no references, with which a payload could hold itself.
const packr = new Packr({
  useRecords: false,
  variableMapSize: true,
  encodeUndefinedAsNil: true,
  copyBuffers: true,
  structuredClone: false,
  // 64-bit integers, Java's longs among them: numbers where a number holds them. (msgpackr knows
  // "auto"; its types do not.)
  int64AsType: "auto" as "number",
});

/**
 * MessagePack, the default. Any MessagePack decoder reads it; in Redisson `TypedJsonJacksonCodec`
 * over a `MessagePackFactory`.
 *
 * Takes what JSON takes, and also `Buffer` and `Uint8Array` (which comes back as a `Buffer`), `Date`, `NaN`,
 * infinities and `bigint` (64 bits). A whole number above 2^32 is written as a float64, which holds it
 * exactly up to 2^53; a `bigint` comes back as a number where a number holds it.
 *
 * As in JSON a property that is `undefined` is left out, `undefined` elsewhere comes back as `null`, -0 as 0,
 * and an object with a `toJSON` is written as what that returns.
 *
 * What would come back as something else is refused, with its place in the payload: functions and symbols,
 * `Map`, `Set`, `Error`, `RegExp` and all other instances of classes without `toJSON`, invalid dates, text
 * that is not well-formed Unicode, and a property `__proto__`.
 */
export const msgpack: Codec = {
  name: "msgpack",
  encode(payload) {
    const data = plainData(payload);
    try {
      return packr.pack(data);
    } catch (error) {
      // msgpackr quotes the number it cannot write, and a payload must not reach a log.
      const isBigint = error instanceof RangeError && error.message.includes("too large to fit");
      throw isBigint ? new RangeError("a bigint has more than 64 bits") : error;
    }
  },
  decode: unpackMessage,
};

/**
 * Reads one MessagePack value that fills the bytes.
 *
 * @throws {UnreadableError} if that is not what they hold; it does not quote them.
 */
export function unpackMessage(bytes: Buffer): unknown {
  try {
    const value = packr.unpack(bytes) as unknown;
    return RARE_TYPES.test(bytes.toString("latin1")) ? withoutOddities(value) : value;
  } catch {
    throw new UnreadableError("the bytes are not MessagePack, or nested too deeply");
  }
}

// 0xc1, which MessagePack never uses, and the extensions.
const RARE_TYPES = /[\xc1\xc7-\xc9\xd4-\xd8]/;

/**
 * Replaces msgpackr's own extension for undefined, which may come from other writers, and throws for
 * what it gives instead of an error: an object for the byte 0xc1, a date that is none.
 */
function withoutOddities(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value !== "object" || value === null) return value;
  if (value === C1) throw new UnreadableError("0xc1 is not MessagePack");
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw new UnreadableError("not a MessagePack timestamp");
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) value[index] = withoutOddities(item);
  } else if (value instanceof Set) {
    const items = [...value].map(withoutOddities);
    value.clear();
    for (const item of items) value.add(item);
  } else if (Object.getPrototypeOf(value) === Object.prototype) {
    const object = value as Record<string, unknown>;
    for (const key of Object.keys(object)) object[key] = withoutOddities(object[key]);
  }
  return value;
}
