import type { Codec } from "../codecs/codec.ts";
import { unpackMessage } from "../codecs/msgpack.ts";
import { JavaTypes, type JacksonOptions } from "./java-types.ts";
import { messagePack } from "./message-pack.ts";

/**
 * Redisson's `MsgPackJacksonCodec`: MessagePack with Java's class names in it.
 *
 * What `JsonJacksonCodec` is for JSON. Bytes are bytes here, both ways; a `bigint` has at most 64
 * bits, and a `BigDecimal` is a double already when Java writes it.
 */
export class MsgPackJacksonCodec<T = unknown> implements Codec<T> {
  readonly name = "MsgPackJacksonCodec";
  readonly #types: JavaTypes;

  /** @throws {TypeError} if an option is not legal. */
  constructor(options: JacksonOptions = {}) {
    this.#types = new JavaTypes(options, false);
  }

  /** @throws {TypeError | RangeError} for what has no Java form: functions, cycles, `@class`. */
  encode(payload: T): Uint8Array {
    return messagePack(this.#types.toJava(payload));
  }

  decode(bytes: Buffer): T {
    return this.#types.fromJava(unpackMessage(bytes)) as T;
  }
}
