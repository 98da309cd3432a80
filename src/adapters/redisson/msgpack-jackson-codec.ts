import type { Codec } from "../../codecs/codec.ts";
import { unpackMessage } from "../../codecs/msgpack.ts";
import { JavaTypes, type JacksonOptions } from "./java-types.ts";
import { messagePack } from "./message-pack.ts";

/**
 * Redisson's `MsgPackJacksonCodec`: MessagePack that contains Java's class names.
 *
 * Works as `JsonJacksonCodec` does, with these differences: bytes are bytes, both ways; a `bigint` has at most 64 bits;
 * and Java writes a `BigDecimal` as a double.
 */
export class MsgPackJacksonCodec<T = unknown> implements Codec<T> {
  readonly name = "MsgPackJacksonCodec";
  readonly #types: JavaTypes;

  /** @throws {TypeError} if an option is not legal. */
  constructor(options: JacksonOptions = {}) {
    this.#types = new JavaTypes(options, false);
  }

  /** @throws {TypeError | RangeError} if a value has no Java form: functions, cycles, `@class`. */
  encode(payload: T): Uint8Array {
    return messagePack(this.#types.toJava(payload));
  }

  decode(bytes: Buffer): T {
    return this.#types.fromJava(unpackMessage(bytes)) as T;
  }
}
