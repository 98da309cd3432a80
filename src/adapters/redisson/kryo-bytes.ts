/**
 * The formats of numbers and texts in Kryo 5 (its `Input` and `Output`): numbers with 7 bits per byte, least
 * significant first; texts as UTF-16 units of one to three bytes each.
 */
import { UnreadableError } from "../../codecs/unreadable-error.ts";

/** Reads from a buffer, never beyond its end. */
export class KryoReader {
  readonly #bytes: Buffer;
  #position = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#position === this.#bytes.length;
  }

  byte(): number {
    return this.take(1).readUInt8();
  }

  /** The next bytes; they share memory with the buffer. */
  take(count: number): Buffer {
    const end = this.#position + count;
    if (end > this.#bytes.length) throw new UnreadableError("the bytes are cut off");
    const taken = this.#bytes.subarray(this.#position, end);
    this.#position = end;
    return taken;
  }

  /** An unsigned 32-bit number of one to five bytes. */
  varint(): number {
    return this.#int(this.byte(), 7);
  }

  /** An unsigned 64-bit number of one to nine bytes; the ninth has 8 bits. */
  varlong(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 56n; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return value | (BigInt(this.byte()) << 56n);
  }

  /** Null for Java's null. */
  text(): string | null {
    const first = this.byte();
    if (first < 0x80) return this.#ascii(first);
    const count = this.#int(first, 6);
    if (count === 0) return null;
    return this.#units(count - 1);
  }

  /** A number whose first byte holds `bits` bits, and above them the flag that more bytes follow. */
  #int(first: number, bits: number): number {
    const goesOn = 1 << bits;
    let value = first & (goesOn - 1);
    let byte = bits === 7 ? first & 0x80 : first & goesOn;
    for (let shift = bits; byte !== 0; shift += 7) {
      if (shift > 31) throw new UnreadableError("a number is too long");
      const next = this.byte();
      value += (next & 0x7f) * 2 ** shift;
      byte = next & 0x80;
    }
    if (value > 0xffff_ffff) throw new UnreadableError("a number is too long");
    return value;
  }

  /** Reads up to and including the byte whose eighth bit is set. */
  #ascii(first: number): string {
    const units = [first];
    let byte: number;
    do {
      byte = this.byte();
      units.push(byte & 0x7f);
    } while (byte < 0x80);
    return Buffer.from(units).toString("latin1");
  }

  #units(count: number): string {
    // Each unit has at least one byte: do not allocate memory for a count that cannot be true.
    if (count > this.#bytes.length - this.#position) throw new UnreadableError("a text is cut off");
    const units = Buffer.alloc(count * 2);
    for (let i = 0; i < count; i++) units.writeUInt16LE(this.#unit(), i * 2);
    return units.toString("utf16le");
  }

  #unit(): number {
    const first = this.byte();
    if (first < 0x80) return first;
    if (first >> 5 === 0b110) return ((first & 0x1f) << 6) | this.#continued();
    if (first >> 4 !== 0b1110) throw new UnreadableError("a text is malformed");
    return ((first & 0x0f) << 12) | (this.#continued() << 6) | this.#continued();
  }

  #continued(): number {
    const byte = this.byte();
    if (byte >> 6 !== 0b10) throw new UnreadableError("a text is malformed");
    return byte & 0x3f;
  }
}

/** An unsigned 32-bit number. */
export function varint(value: number): Buffer {
  return varlong(BigInt(value >>> 0));
}

/** The bits of a 64-bit number, signed or not. */
export function varlong(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  while (rest > 0x7fn && bytes.length < 8) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

/** Maps small signed numbers to small unsigned ones. */
export function zigzag(value: bigint): bigint {
  return BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
}

export function unzigzag(value: bigint): bigint {
  return (value >> 1n) ^ -(value & 1n);
}

export function text(value: string): Buffer {
  const count = value.length;
  if (count > 1 && count <= 32 && /^[\0-\x7f]*$/.test(value)) {
    const ascii = Buffer.from(value, "latin1");
    ascii[count - 1]! |= 0x80;
    return ascii;
  }
  return Buffer.concat([flagged(count + 1), utf16(value)]);
}

/** The count in front of a text, with the bit that marks a text as not ASCII. */
function flagged(value: number): Buffer {
  if (value < 0x40) return Buffer.of(0x80 | value);
  return Buffer.concat([Buffer.of(0xc0 | (value & 0x3f)), varint(value >>> 6)]);
}

function utf16(value: string): Buffer {
  const bytes = Buffer.alloc(value.length * 3);
  let size = 0;
  for (let i = 0; i < value.length; i++) {
    const unit = value.charCodeAt(i);
    if (unit < 0x80) bytes[size++] = unit;
    else {
      if (unit < 0x800) bytes[size++] = 0xc0 | (unit >> 6);
      else {
        bytes[size++] = 0xe0 | (unit >> 12);
        bytes[size++] = 0x80 | ((unit >> 6) & 0x3f);
      }
      bytes[size++] = 0x80 | (unit & 0x3f);
    }
  }
  return bytes.subarray(0, size);
}
