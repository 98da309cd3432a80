import { types } from "node:util";
import type { Tree } from "./java-types.ts";

/**
 * MessagePack byte for byte as jackson-dataformat-msgpack writes it, since Redisson's `remove` and `contains` compare
 * bytes: whole numbers in the shortest form, positive ones unsigned.
 *
 * @throws {TypeError} if a text is not well-formed Unicode.
 * @throws {RangeError} if a `bigint` has more than 64 bits.
 */
export function messagePack(tree: Tree): Buffer {
  const parts: Uint8Array[] = [];
  write(tree, parts);
  return Buffer.concat(parts);
}

function write(tree: Tree, parts: Uint8Array[]): void {
  if (tree === null) parts.push(Buffer.of(0xc0));
  else if (typeof tree === "boolean") parts.push(Buffer.of(tree ? 0xc3 : 0xc2));
  else if (typeof tree === "string") writeText(tree, parts);
  else if (typeof tree === "bigint") parts.push(whole(tree));
  else if (typeof tree === "number") {
    const isWhole = Number.isSafeInteger(tree) && !Object.is(tree, -0);
    parts.push(isWhole ? whole(BigInt(tree)) : double(tree));
  } else if (types.isUint8Array(tree)) {
    parts.push(head(BIN, tree.length), tree);
  } else if (isMap(tree)) {
    parts.push(head(MAP, tree.size));
    for (const [key, value] of tree) {
      writeText(key, parts);
      write(value, parts);
    }
  } else {
    parts.push(head(ARRAY, tree.length));
    for (const item of tree) write(item, parts);
  }
}

function isMap(
  tree: readonly Tree[] | ReadonlyMap<string, Tree>,
): tree is ReadonlyMap<string, Tree> {
  return tree instanceof Map;
}

function writeText(text: string, parts: Uint8Array[]): void {
  if (!text.isWellFormed()) throw new TypeError("a string is not well-formed Unicode");
  const bytes = Buffer.from(text);
  parts.push(head(TEXT, bytes.length), bytes);
}

/** First bytes by length. Up to `fixMax` the byte itself holds the length; otherwise 8, 16 or 32 bits follow. */
interface Lengths {
  readonly fix: number;
  readonly fixMax: number;
  readonly bits8?: number;
  readonly bits16: number;
  readonly bits32: number;
}

const TEXT: Lengths = { fix: 0xa0, fixMax: 31, bits8: 0xd9, bits16: 0xda, bits32: 0xdb };
const BIN: Lengths = { fix: 0, fixMax: -1, bits8: 0xc4, bits16: 0xc5, bits32: 0xc6 };
const ARRAY: Lengths = { fix: 0x90, fixMax: 15, bits16: 0xdc, bits32: 0xdd };
const MAP: Lengths = { fix: 0x80, fixMax: 15, bits16: 0xde, bits32: 0xdf };

function head({ fix, fixMax, bits8, bits16, bits32 }: Lengths, length: number): Buffer {
  if (length <= fixMax) return Buffer.of(fix | length);
  if (bits8 !== undefined && length <= 0xff) return Buffer.of(bits8, length);
  if (length <= 0xffff) return Buffer.of(bits16, length >> 8, length & 0xff);
  const bytes = Buffer.of(bits32, 0, 0, 0, 0);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

function whole(value: bigint): Buffer {
  if (value >= -32n && value < 128n) return Buffer.of(Number(value) & 0xff);
  const bytes = Buffer.alloc(9);
  if (value >= 0n) {
    if (value >= 2n ** 64n) throw new RangeError("a bigint has more than 64 bits");
    bytes.writeBigUInt64BE(value, 1);
    if (value < 2n ** 8n) return tail(bytes, 1, 0xcc);
    if (value < 2n ** 16n) return tail(bytes, 2, 0xcd);
    return value < 2n ** 32n ? tail(bytes, 4, 0xce) : tail(bytes, 8, 0xcf);
  }
  if (value < -(2n ** 63n)) throw new RangeError("a bigint has more than 64 bits");
  bytes.writeBigInt64BE(value, 1);
  if (value >= -(2n ** 7n)) return tail(bytes, 1, 0xd0);
  if (value >= -(2n ** 15n)) return tail(bytes, 2, 0xd1);
  return value >= -(2n ** 31n) ? tail(bytes, 4, 0xd2) : tail(bytes, 8, 0xd3);
}

/** The last bytes of a 64-bit number, with their type in front. */
function tail(bytes: Buffer, count: number, type: number): Buffer {
  const shortened = bytes.subarray(bytes.length - count - 1);
  shortened[0] = type;
  return shortened;
}

function double(value: number): Buffer {
  const bytes = Buffer.of(0xcb, 0, 0, 0, 0, 0, 0, 0, 0);
  bytes.writeDoubleBE(value, 1);
  return bytes;
}
