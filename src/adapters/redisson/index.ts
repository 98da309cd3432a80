/**
 * `delayline/redisson`: counterparts of Redisson's codecs, with the same names.
 *
 * Redisson codecs that a built-in codec covers are not repeated: `StringCodec` is `"string"`, `ByteArrayCodec` is
 * `"bytes"`, `TypedJsonJacksonCodec` is `"json"`, or `"msgpack"` over a `MessagePackFactory`.
 *
 * @module delayline/redisson
 */
export type { JacksonOptions } from "./java-types.ts";
export { JavaValue } from "./java-value.ts";
export { JsonJacksonCodec } from "./json-jackson-codec.ts";
export type { KryoScalar } from "./kryo-scalars.ts";
export { Kryo5Codec } from "./kryo5-codec.ts";
export { LongCodec } from "./long-codec.ts";
export { MsgPackJacksonCodec } from "./msgpack-jackson-codec.ts";
