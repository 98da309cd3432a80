import type { Codec } from "../codec.ts";
import { UnreadableError } from "../codecs/unreadable-error.ts";
import { JavaValue } from "./java-value.ts";
import { KryoReader, text, unzigzag, varint, varlong, zigzag } from "./kryo-bytes.ts";
import { compact } from "./long-codec.ts";

/** What {@link Kryo5Codec} carries. Whole numbers from 2^53 on come as `bigint`. */
export type KryoScalar = string | number | bigint | boolean | null | Date | Uint8Array;

/**
 * Redisson's `Kryo5Codec`, its default since 3.19, for scalars; without `useReferences` and
 * `allowedClasses`, as Redisson makes it.
 *
 * Writes `string`, `boolean` and null as such, `Date` as `java.util.Date`, bytes as `byte[]`, a
 * `bigint` as `Long` (`BigInteger` beyond 64 bits), and a number as `Integer`, `Long` or `Double`, by
 * its value. `new JavaValue("java.lang.Double", 5)` chooses another: `Byte`, `Short`, `Integer`,
 * `Long`, `Float`, `Double`, `Character`, `java.math.BigInteger`, `java.util.UUID` (as text).
 *
 * Reads all of these. It does not carry objects: Kryo writes the fields of a class without their names,
 * so only the class itself can tell what they are. Use `TypedJsonJacksonCodec`, or the same over a
 * `MessagePackFactory`, in Java, and `"json"` or `"msgpack"` here.
 */
export class Kryo5Codec<T extends KryoScalar | JavaValue = KryoScalar> implements Codec<T> {
  readonly name = "Kryo5Codec";

  /** @throws {TypeError | RangeError} for objects, and for what its Java class cannot hold. */
  encode(payload: T): Uint8Array {
    if (payload === null || payload === undefined) return Buffer.of(NULL);
    const { javaClass, value } = payload instanceof JavaValue ? payload : natural(payload);
    const scalar = SCALARS.find((each) => each.javaClass === javaClass);
    if (scalar === undefined)
      throw new TypeError(`Kryo5Codec carries scalars only here: ${REMEDY}`);
    const head =
      scalar.id === BY_NAME
        ? Buffer.concat([Buffer.of(BY_NAME, 0), text(scalar.javaClass)])
        : Buffer.of(scalar.id);
    return Buffer.concat([head, scalar.write(value)]);
  }

  decode(bytes: Buffer): T {
    const reader = new KryoReader(bytes);
    const value = readClassAndValue(reader);
    if (!reader.isAtEnd) throw new UnreadableError("there are more bytes behind the value");
    return value as T;
  }
}

const REMEDY =
  'for objects use TypedJsonJacksonCodec in Java and "json" in Node, or both over MessagePack';

/** The numbers that Kryo writes for classes; those it knows by number are registered by itself. */
const NULL = 0;
const BY_NAME = 1;

interface Scalar {
  readonly id: number;
  readonly javaClass: string;
  write(value: unknown): Buffer;
  read(reader: KryoReader): KryoScalar;
}

const SCALARS: readonly Scalar[] = [
  {
    id: 2,
    javaClass: "java.lang.Integer",
    write: (value) => varint(Number(BigInt.asUintN(32, zigzag(whole(value, 32))))),
    read: (reader) => Number(unzigzag(BigInt(reader.varint()))),
  },
  {
    id: 3,
    javaClass: "java.lang.String",
    write: (value) => text(checked(value, "string")),
    read: (reader) => reader.text(),
  },
  {
    id: 4,
    javaClass: "java.lang.Float",
    write(value) {
      const bytes = Buffer.alloc(4);
      bytes.writeFloatLE(checked(value, "number"));
      return bytes;
    },
    read: (reader) => reader.take(4).readFloatLE(),
  },
  {
    id: 5,
    javaClass: "java.lang.Boolean",
    write: (value) => Buffer.of(checked(value, "boolean") ? 1 : 0),
    read(reader) {
      const byte = reader.byte();
      if (byte > 1) throw new UnreadableError("a Boolean is malformed");
      return byte === 1;
    },
  },
  {
    id: 6,
    javaClass: "java.lang.Byte",
    write: (value) => Buffer.of(Number(whole(value, 8)) & 0xff),
    read: (reader) => reader.take(1).readInt8(),
  },
  {
    id: 7,
    javaClass: "java.lang.Character",
    write(value) {
      const character = checked(value, "string");
      if (character.length !== 1) throw new RangeError("a Character is one UTF-16 unit");
      return Buffer.from(character, "utf16le");
    },
    read: (reader) => reader.take(2).toString("utf16le"),
  },
  {
    id: 8,
    javaClass: "java.lang.Short",
    write(value) {
      const bytes = Buffer.alloc(2);
      bytes.writeInt16LE(Number(whole(value, 16)));
      return bytes;
    },
    read: (reader) => reader.take(2).readInt16LE(),
  },
  {
    id: 9,
    javaClass: "java.lang.Long",
    write: (value) => varlong(zigzag(whole(value, 64))),
    read: (reader) => compact(unzigzag(reader.varlong())),
  },
  {
    id: 10,
    javaClass: "java.lang.Double",
    write(value) {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleLE(checked(value, "number"));
      return bytes;
    },
    read: (reader) => reader.take(8).readDoubleLE(),
  },
  {
    id: BY_NAME,
    javaClass: "[B",
    write(value) {
      if (!(value instanceof Uint8Array)) throw new TypeError("a byte[] takes a Uint8Array");
      return Buffer.concat([varint(value.length + 1), value]);
    },
    read: (reader) => sized(reader, (size) => Buffer.from(reader.take(size))),
  },
  {
    id: BY_NAME,
    javaClass: "java.util.Date",
    write(value) {
      if (!(value instanceof Date)) throw new TypeError("a Date takes a Date");
      if (Number.isNaN(value.getTime())) throw new RangeError("the date is invalid");
      return varlong(BigInt(value.getTime()));
    },
    read: readDate,
  },
  {
    id: BY_NAME,
    javaClass: "java.sql.Timestamp",
    write: () => {
      throw new TypeError("a Timestamp is written as a Date");
    },
    read: readDate,
  },
  {
    id: BY_NAME,
    javaClass: "java.math.BigInteger",
    write(value) {
      const bytes = twosComplement(whole(value, MAX_BITS));
      return Buffer.concat([varint(bytes.length + 1), bytes]);
    },
    read: (reader) =>
      sized(reader, (size) => {
        if (size === 0 || size > MAX_BITS / 8)
          throw new UnreadableError("a BigInteger is malformed");
        return compact(BigInt.asIntN(size * 8, BigInt(`0x${reader.take(size).toString("hex")}`)));
      }),
  },
  {
    id: BY_NAME,
    javaClass: "java.util.UUID",
    write(value) {
      const hex = checked(value, "string").replaceAll("-", "");
      if (!/^[0-9a-f]{32}$/i.test(hex)) throw new TypeError("a UUID has 32 hexadecimal digits");
      const bytes = Buffer.from(hex, "hex");
      // Two longs, each least significant byte first.
      return Buffer.concat([bytes.subarray(0, 8).toReversed(), bytes.subarray(8).toReversed()]);
    },
    read(reader) {
      const halves = [reader.take(8), reader.take(8)].map((half) => half.toReversed());
      const hex = Buffer.concat(halves).toString("hex");
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    },
  },
];

/** Jackson and we agree on a thousand digits; this is somewhat more. */
const MAX_BITS = 4096;

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
      if (value instanceof Date) return new JavaValue("java.util.Date", value);
      if (value instanceof Uint8Array) return new JavaValue("[B", value);
      return new JavaValue(undefined, value);
  }
}

function readClassAndValue(reader: KryoReader): KryoScalar {
  const id = reader.varint();
  if (id === NULL) return null;
  let scalar: Scalar | undefined;
  if (id === BY_NAME) {
    // The number that the name would have for the rest of the message.
    if (reader.varint() !== 0) throw new UnreadableError("a class is malformed");
    const name = reader.text();
    scalar = SCALARS.find((each) => each.javaClass === name);
  } else {
    scalar = SCALARS.find((each) => each.id === id);
  }
  if (scalar === undefined) {
    throw new UnreadableError(
      `the message is an object, or not of Kryo5Codec, which carries scalars only here: ${REMEDY}`,
    );
  }
  return scalar.read(reader);
}

function readDate(reader: KryoReader): Date | null {
  const at = BigInt.asIntN(64, reader.varlong());
  // Java's null in a field of type Date.
  if (at === -(2n ** 63n)) return null;
  const date = new Date(Number(at));
  if (Number.isNaN(date.getTime())) throw new UnreadableError("a date is out of range");
  return date;
}

/** What follows its size plus one; 0 is Java's null. */
function sized<T>(reader: KryoReader, read: (size: number) => T): T | null {
  const size = reader.varint();
  return size === 0 ? null : read(size - 1);
}

function checked<T extends keyof Types>(value: unknown, type: T): Types[T] {
  if (typeof value !== type) throw new TypeError(`it takes a ${type}, got ${typeof value}`);
  return value as Types[T];
}

interface Types {
  string: string;
  number: number;
  boolean: boolean;
}

function whole(value: unknown, bits: number): bigint {
  const isWhole = typeof value === "bigint" || Number.isSafeInteger(value);
  if (!isWhole) throw new TypeError("it takes a whole number, from 2^53 on a bigint");
  const number = BigInt(value as number | bigint);
  if (BigInt.asIntN(bits, number) !== number) throw new RangeError(`it has more than ${bits} bits`);
  return number;
}

/** Big-endian, in as few bytes as hold the sign too. */
function twosComplement(value: bigint): Buffer {
  let size = 1;
  while (BigInt.asIntN(size * 8, value) !== value) size++;
  const hex = BigInt.asUintN(size * 8, value).toString(16);
  return Buffer.from(hex.padStart(size * 2, "0"), "hex");
}
