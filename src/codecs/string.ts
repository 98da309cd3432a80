import type { Codec } from "./codec.ts";
import { UnwritableError } from "./unwritable-error.ts";
import { decodeUtf8 } from "./utf8.ts";

/** Text in UTF-8, as Redisson's `StringCodec` writes it. Takes strings only. */
export const string: Codec<string> = {
  name: "string",
  encode(payload) {
    if (typeof payload !== "string") {
      throw new UnwritableError(`the string codec takes strings, got ${typeof payload}`);
    }
    if (!payload.isWellFormed()) throw new UnwritableError("the string is not well-formed Unicode");
    return Buffer.from(payload);
  },
  decode: decodeUtf8,
};
