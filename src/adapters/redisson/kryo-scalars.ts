import { types } from "node:util";
import { UnreadableError } from "../../codecs/unreadable-error.ts";
import { text, unzigzag, varint, varlong, zigzag, type KryoReader } from "./kryo-bytes.ts";
import { compact } from "./long-codec.ts";

/** The values that `Kryo5Codec` carries. Whole numbers from 2^53 on are read as `bigint`. */
export type KryoScalar = string | number | bigint | boolean | null | Date | Uint8Array;

/** The id of classes that Kryo has not numbered; their name follows. */
export const BY_NAME = 1;

/** A class, and how Kryo 5 reads and writes its values. */
interface Scalar {
  readonly id: number;
  readonly javaClass: string;
  write(value: unknown): Buffer;
  read(reader: KryoReader): KryoScalar;
}

/** Kryo itself registers the numbered classes, in this order. */
export const SCALARS: readonly Scalar[] = [
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
      if (!types.isUint8Array(value)) throw new TypeError("a byte[] takes a Uint8Array");
      return Buffer.concat([varint(value.length + 1), value]);
    },
    read: (reader) => sized(reader, (size) => Buffer.from(reader.take(size))),
  },
  {
    id: BY_NAME,
    javaClass: "java.util.Date",
    write(value) {
      if (!types.isDate(value)) throw new TypeError("a Date takes a Date");
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

/** Jackson reads at most a thousand digits; this is slightly more. */
const MAX_BITS = 4096;

function readDate(reader: KryoReader): Date | null {
  const at = BigInt.asIntN(64, reader.varlong());
  // Java's null in a field of type Date.
  if (at === -(2n ** 63n)) return null;
  const date = new Date(Number(at));
  if (Number.isNaN(date.getTime())) throw new UnreadableError("a date is out of range");
  return date;
}

/** A value behind its size plus one; 0 is Java's null. */
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
