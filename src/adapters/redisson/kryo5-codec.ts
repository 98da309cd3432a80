import { types } from "node:util";
import type { Codec } from "../../codecs/codec.ts";
import { UnreadableError } from "../../codecs/unreadable-error.ts";
import { isJavaValue, JavaValue } from "./java-value.ts";
import { KryoReader, text } from "./kryo-bytes.ts";
import { BY_NAME, SCALARS, type KryoScalar } from "./kryo-scalars.ts";

/**
 * Redisson's `Kryo5Codec`, its default since 3.19, for scalars; without `useReferences` and `allowedClasses`, which is
 * Redisson's default.
 *
 * Writes `string`, `boolean` and null as such, `Date` as `java.util.Date`, bytes as `byte[]`, a `bigint` as `Long`
 * (`BigInteger` beyond 64 bits), and a number as `Integer`, `Long` or `Double`, by its value.
 * `new JavaValue("java.lang.Double", 5)` chooses the class: `Byte`, `Short`, `Integer`, `Long`, `Float`, `Double`,
 * `Character`, `java.math.BigInteger`, `java.util.UUID` (as text).
 *
 * Reads all of these. It does not carry objects: Kryo writes the fields of a class without their names, so only that
 * class can read them. Use `TypedJsonJacksonCodec`, alone or over a `MessagePackFactory`, in Java, and `"json"` or
 * `"msgpack"` here.
 */
export class Kryo5Codec<T extends KryoScalar | JavaValue = KryoScalar> implements Codec<T> {
  readonly name = "Kryo5Codec";

  /** @throws {TypeError | RangeError} for objects, and for values that their Java class cannot hold. */
  encode(payload: T): Uint8Array {
    if (payload === null || payload === undefined) return Buffer.of(NULL);
    const { javaClass, value } = isJavaValue(payload) ? payload : natural(payload);
    const scalar = SCALARS.find((each) => each.javaClass === javaClass);
    if (scalar === undefined) throw new TypeError(`Kryo5Codec carries scalars only: ${REMEDY}`);
    const head =
      scalar.id === BY_NAME
        ? Buffer.concat([Buffer.of(BY_NAME, 0), text(scalar.javaClass)])
        : Buffer.of(scalar.id);
    return Buffer.concat([head, scalar.write(value)]);
  }

  decode(bytes: Buffer): T {
    const reader = new KryoReader(bytes);
    const value = readClassAndValue(reader);
    if (!reader.isAtEnd) throw new UnreadableError("there are more bytes after the value");
    return value as T;
  }
}

const REMEDY =
  'for objects use TypedJsonJacksonCodec in Java and "json" in Node, or both over MessagePack';

/** The id of null. */
const NULL = 0;

function natural(value: unknown): JavaValue {
  switch (typeof value) {
    case "string":
      return new JavaValue("java.lang.String", value);
    case "boolean":
      return new JavaValue("java.lang.Boolean", value);
    case "bigint": {
      const isLong = BigInt.asIntN(64, value) === value;
      return new JavaValue(isLong ? "java.lang.Long" : "java.math.BigInteger", value);
    }
    case "number": {
      if (!Number.isSafeInteger(value) || Object.is(value, -0)) {
        return new JavaValue("java.lang.Double", value);
      }
      return new JavaValue((value | 0) === value ? "java.lang.Integer" : "java.lang.Long", value);
    }
    default:
      if (types.isDate(value)) return new JavaValue("java.util.Date", value);
      if (types.isUint8Array(value)) return new JavaValue("[B", value);
      return new JavaValue(undefined, value);
  }
}

function readClassAndValue(reader: KryoReader): KryoScalar {
  const id = reader.varint();
  if (id === NULL) return null;
  let scalar: (typeof SCALARS)[number] | undefined;
  if (id === BY_NAME) {
    // The number of this class for the rest of the message. The first one is 0.
    if (reader.varint() !== 0) throw new UnreadableError("a class is malformed");
    const name = reader.text();
    scalar = SCALARS.find((each) => each.javaClass === name);
  } else {
    scalar = SCALARS.find((each) => each.id === id);
  }
  if (scalar === undefined) {
    throw new UnreadableError(
      `the message is an object, or was not written by Kryo5Codec, which carries scalars only: ${REMEDY}`,
    );
  }
  return scalar.read(reader);
}
