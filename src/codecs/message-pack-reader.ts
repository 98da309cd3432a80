import { isUtf8 } from "node:buffer";
import { UnreadableError } from "./unreadable-error.ts";

/*
 * Reads MessagePack as its specification has it. (msgpackr decodes texts in other ways with its native addon than without
 * it, so that a payload would depend on how the package was installed.)
 */

/**
 * Reads bytes that hold exactly one MessagePack value.
 *
 * A map becomes an object, a timestamp a Date, and a 64-bit integer a `bigint` where no number holds it. Bytes are
 * copied.
 *
 * @throws {ForeignTypeError} for a type that MessagePack does not define: an extension of the writer.
 * @throws {UnreadableError} if they hold anything else, or a text that is not UTF-8.
 */
export function readMessagePack(bytes: Buffer): unknown {
  const reader: Reader = { bytes, at: 0 };
  const value = read(reader);
  if (reader.at < bytes.length) throw new UnreadableError("there is more behind the value");
  return value;
}

/** The bytes hold an extension type of their writer, which MessagePack does not define. */
export class ForeignTypeError extends UnreadableError {}

interface Reader {
  readonly bytes: Buffer;
  at: number;
}

function read(reader: Reader): unknown {
  const head = reader.bytes[reader.at++];
  if (head === undefined) throw cutOff();
  if (head < 0x80) return head;
  if (head < 0x90) return map(reader, head & 0x0f);
  if (head < 0xa0) return list(reader, head & 0x0f);
  if (head < 0xc0) return text(reader, head & 0x1f);
  if (head >= 0xe0) return head - 0x100;
  switch (head) {
    case 0xc0:
      return null;
    case 0xc2:
      return false;
    case 0xc3:
      return true;
    case 0xc4:
      return binary(reader, whole(reader, 1));
    case 0xc5:
      return binary(reader, whole(reader, 2));
    case 0xc6:
      return binary(reader, whole(reader, 4));
    case 0xc7:
      return extension(reader, whole(reader, 1));
    case 0xc8:
      return extension(reader, whole(reader, 2));
    case 0xc9:
      return extension(reader, whole(reader, 4));
    case 0xca:
      return reader.bytes.readFloatBE(next(reader, 4));
    case 0xcb:
      return reader.bytes.readDoubleBE(next(reader, 8));
    case 0xcc:
      return whole(reader, 1);
    case 0xcd:
      return whole(reader, 2);
    case 0xce:
      return whole(reader, 4);
    case 0xcf:
      return numberIfExact(reader.bytes.readBigUInt64BE(next(reader, 8)));
    case 0xd0:
      return reader.bytes.readInt8(next(reader, 1));
    case 0xd1:
      return reader.bytes.readInt16BE(next(reader, 2));
    case 0xd2:
      return reader.bytes.readInt32BE(next(reader, 4));
    case 0xd3:
      return numberIfExact(reader.bytes.readBigInt64BE(next(reader, 8)));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return extension(reader, 1 << (head - 0xd4));
    case 0xd9:
      return text(reader, whole(reader, 1));
    case 0xda:
      return text(reader, whole(reader, 2));
    case 0xdb:
      return text(reader, whole(reader, 4));
    case 0xdc:
      return list(reader, whole(reader, 2));
    case 0xdd:
      return list(reader, whole(reader, 4));
    case 0xde:
      return map(reader, whole(reader, 2));
    case 0xdf:
      return map(reader, whole(reader, 4));
    default:
      throw new UnreadableError("0xc1 is not MessagePack");
  }
}

/** Moves on by some bytes, and returns where they begin. */
function next(reader: Reader, length: number): number {
  const start = reader.at;
  if (start + length > reader.bytes.length) throw cutOff();
  reader.at = start + length;
  return start;
}

function whole(reader: Reader, length: 1 | 2 | 4): number {
  return reader.bytes.readUIntBE(next(reader, length), length);
}

function text(reader: Reader, length: number): string {
  const { bytes } = reader;
  const start = next(reader, length);
  const end = reader.at;
  const short = length <= SHORT ? ascii(bytes, start, length) : undefined;
  if (short !== undefined) return short;
  if (!isUtf8(bytes.subarray(start, end))) throw new UnreadableError("a text is not UTF-8");
  return bytes.toString("utf8", start, end);
}

function binary(reader: Reader, length: number): Buffer {
  const start = next(reader, length);
  return Buffer.from(reader.bytes.subarray(start, reader.at));
}

function list(reader: Reader, length: number): unknown[] {
  const items: unknown[] = [];
  for (let i = 0; i < length; i++) items.push(read(reader));
  return items;
}

function map(reader: Reader, size: number): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (let i = 0; i < size; i++) {
    const key = read(reader);
    if (typeof key === "object" && key !== null)
      throw new UnreadableError("a key of a map is no scalar");
    const name = String(key);
    fields[name === "__proto__" ? "__proto_" : name] = read(reader);
  }
  return fields;
}

/** A timestamp; other types are the writer's own. */
function extension(reader: Reader, length: number): Date {
  const { bytes } = reader;
  const isTimestamp = bytes[next(reader, 1)] === 0xff;
  const start = next(reader, length);
  if (!isTimestamp) throw new ForeignTypeError("an extension type");
  const { seconds, nanoseconds } = timestamp(bytes, start, length);
  const date = new Date(seconds * 1000 + Math.floor(nanoseconds / 1e6));
  if (Number.isNaN(date.getTime())) throw notTimestamp();
  return date;
}

function timestamp(bytes: Buffer, start: number, length: number) {
  switch (length) {
    case 4:
      return { seconds: bytes.readUInt32BE(start), nanoseconds: 0 };
    case 8: {
      // 30 bits and 34 bits.
      const high = bytes.readUInt32BE(start);
      const seconds = (high & 3) * 2 ** 32 + bytes.readUInt32BE(start + 4);
      return { seconds, nanoseconds: high >>> 2 };
    }
    case 12:
      return {
        seconds: Number(bytes.readBigInt64BE(start + 4)),
        nanoseconds: bytes.readUInt32BE(start),
      };
    default:
      throw notTimestamp();
  }
}

/** A short text of ASCII, as most are; undefined if it is none. */
function ascii(bytes: Buffer, start: number, length: number): string | undefined {
  let found = "";
  for (let i = start; i < start + length; i++) {
    const byte = bytes[i]!;
    if (byte >= 0x80) return undefined;
    found += String.fromCharCode(byte);
  }
  return found;
}

/** From here on, Node's own decoder is faster. */
const SHORT = 16;

function numberIfExact(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function cutOff(): UnreadableError {
  return new UnreadableError("it is cut off");
}

function notTimestamp(): UnreadableError {
  return new UnreadableError("not a MessagePack timestamp");
}
