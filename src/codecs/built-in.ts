import type { Codec } from "./codec.ts";
import { bytes } from "./bytes.ts";
import { json } from "./json.ts";
import { msgpack } from "./msgpack.ts";
import { string } from "./string.ts";

/** The codecs that come with the package, by name, and the payloads that they take. */
export interface BuiltInCodecs {
  msgpack: unknown;
  json: unknown;
  string: string;
  bytes: Uint8Array;
}

export type CodecName = keyof BuiltInCodecs;

/** Those whose payloads have one type. */
export type TypedCodecName = "string" | "bytes";

const builtIn: { readonly [Name in CodecName]: Codec<BuiltInCodecs[Name]> } = {
  msgpack,
  json,
  string,
  bytes,
};

/**
 * The codec meant by an option: one of ours by name, or the user's own object.
 *
 * @throws {TypeError} if it is neither.
 */
export function resolveCodec<T>(codec: CodecName | Codec<T>): Codec<T> {
  if (typeof codec === "string" && Object.hasOwn(builtIn, codec)) {
    // Which payloads go with a codec named by a string is for the caller to know.
    return builtIn[codec] as Codec as Codec<T>;
  }
  if (
    typeof codec === "object" &&
    codec !== null &&
    typeof codec.encode === "function" &&
    typeof codec.decode === "function" &&
    typeof codec.name === "string"
  ) {
    return codec;
  }
  const got = typeof codec === "string" ? `"${codec}"` : typeof codec;
  throw new TypeError(
    `codec must be ${Object.keys(builtIn).join(", ")} or an object with name, encode and decode; got ${got}`,
  );
}
