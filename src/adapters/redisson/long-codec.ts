import type { Codec } from "../../codecs/codec.ts";
import { UnreadableError } from "../../codecs/unreadable-error.ts";
import { UnwritableError } from "../../codecs/unwritable-error.ts";

/**
 * Redisson's `LongCodec` (and `IntegerCodec`): a whole number of 64 bits as decimal text.
 *
 * Writes numbers below 2^53 and `bigint`. Reads a number, or a `bigint` from 2^53 on.
 */
export class LongCodec implements Codec<number | bigint> {
  readonly name = "LongCodec";

  /** @throws {TypeError | RangeError} if it is not a whole number, or not one of 64 bits. */
  encode(payload: number | bigint): Uint8Array {
    if (typeof payload !== "bigint" && typeof payload !== "number") {
      throw new UnwritableError(`LongCodec takes whole numbers, got ${typeof payload}`);
    }
    if (typeof payload === "number" && !Number.isSafeInteger(payload)) {
      throw new RangeError("LongCodec takes whole numbers, from 2^53 on as a bigint");
    }
    if (typeof payload === "bigint" && BigInt.asIntN(64, payload) !== payload) {
      throw new RangeError("a bigint has more than 64 bits");
    }
    return Buffer.from(String(payload));
  }

  decode(bytes: Buffer): number | bigint {
    // The texts that Java's Long.valueOf reads.
    const text = bytes.toString("latin1");
    if (!/^[+-]?0*\d{1,19}$/.test(text))
      throw new UnreadableError("the bytes are not a whole number");
    const value = BigInt(text);
    if (BigInt.asIntN(64, value) !== value)
      throw new UnreadableError("the number has more than 64 bits");
    return compact(value);
  }
}

/** A whole number: a number below 2^53, otherwise the `bigint` itself. */
export function compact(value: bigint): number | bigint {
  return value < 2n ** 53n && value > -(2n ** 53n) ? Number(value) : value;
}
