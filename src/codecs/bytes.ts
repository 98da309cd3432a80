import type { Codec } from "./codec.ts";

/** Bytes as they are, as Redisson's `ByteArrayCodec` writes them. Decodes to a `Buffer` of its own memory. */
export const bytes: Codec<Uint8Array> = {
  name: "bytes",
  encode(payload) {
    if (!(payload instanceof Uint8Array)) {
      throw new TypeError(`the bytes codec takes a Uint8Array, got ${typeof payload}`);
    }
    return Buffer.from(payload);
  },
  decode: (raw) => Buffer.from(raw),
};
