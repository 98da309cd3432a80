import type { Codec } from "./codec.ts";
import { bytes } from "./bytes.ts";
import { json } from "./json.ts";
import { msgpack } from "./msgpack.ts";
import { string } from "./string.ts";

/** The built-in codecs by name, and the type of payload that each takes. */
export interface BuiltInCodecs {
  msgpack: unknown;
  json: unknown;
  string: string;
  bytes: Uint8Array;
}

/** The name of a built-in codec. */
export type CodecName = keyof BuiltInCodecs;

/** The built-in codecs that take payloads of one type only. */
export type TypedCodecName = "string" | "bytes";

/** The names of the built-in codecs that take payloads of a type; all of them if nothing is known about the type. */
export type CodecNameOf<T> = unknown extends T
  ? CodecName
  : { [Name in CodecName]: [T] extends [BuiltInCodecs[Name]] ? Name : never }[CodecName];

const builtIn: { readonly [Name in CodecName]: Codec<BuiltInCodecs[Name]> } = {
  msgpack,
  json,
  string,
  bytes,
};

/**
 * Returns the codec that an option names or is: a built-in one by its name, or the user's own object.
 *
 * @throws {TypeError} if it is neither.
 */
export function resolveCodec<T>(codec: CodecName | Codec<T>): Codec<T> {
  if (typeof codec === "string" && Object.hasOwn(builtIn, codec)) {
    // The caller is responsible for a T that fits the named codec.
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
