import { types } from "node:util";
import type { Codec } from "./codec.ts";
import { UnwritableError } from "./unwritable-error.ts";

/** Bytes as they are, as Redisson's `ByteArrayCodec` writes them. Decodes to a `Buffer` of its own memory. */
export const bytes: Codec<Uint8Array> = {
  name: "bytes",
  encode(payload) {
    if (!types.isUint8Array(payload)) {
      throw new UnwritableError(`the bytes codec takes a Uint8Array, got ${typeof payload}`);
    }
    return Buffer.from(payload);
  },
  decode: (raw) => Buffer.from(raw),
};
