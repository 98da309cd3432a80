import { Packr } from "msgpackr";

/**
 * How payloads become bytes and bytes become payloads: two functions and a name.
 *
 * `encode` throws for what it cannot encode, `decode` for bytes that it cannot read. `encode` gives
 * bytes that nobody changes afterwards; `decode` keeps nothing of the buffer that it is given.
 */
export interface Codec<T = unknown> {
  /** Named in errors. */
  readonly name: string;
  encode(payload: T): Uint8Array;
  decode(bytes: Buffer): T;
}

/** The codecs that come with the package, by name. */
export interface BuiltInCodecs {
  msgpack: unknown;
  json: unknown;
  string: string;
  bytes: Uint8Array;
}

export type CodecName = keyof BuiltInCodecs;

// Plain MessagePack for others to read: no records extension, the smallest map header, nil for
// undefined. copyBuffers: a decoded Buffer must not share memory with the reply it came in.
const packr = new Packr({
  useRecords: false,
  variableMapSize: true,
  encodeUndefinedAsNil: true,
  copyBuffers: true,
  // 64-bit integers, Java's longs among them: numbers where a number holds them. (msgpackr knows
  // "auto"; its types do not.)
  int64AsType: "auto" as "number",
});

/**
 * MessagePack, the default. Any MessagePack decoder reads it.
 *
 * Takes what JSON takes, and also `Buffer`, `Date`, `bigint` (64 bits), `Map` and `Set` (as an
 * array). `undefined` is written as nil and comes back as `null`. A whole number above 2^32 is
 * written as a float64, which holds it exactly up to 2^53; a `bigint` comes back as a number where a
 * number holds it.
 */
export const msgpack: Codec = {
  name: "msgpack",
  encode(payload) {
    if (typeof payload === "function" || typeof payload === "symbol") {
      throw new TypeError(`a ${typeof payload} has no MessagePack form`);
    }
    try {
      return packr.pack(payload);
    } catch (error) {
      // msgpackr quotes the number it cannot write, and a payload must not reach a log.
      const isBigint = error instanceof RangeError && error.message.includes("too large to fit");
      throw isBigint ? new RangeError("a bigint has more than 64 bits") : error;
    }
  },
  // msgpackr's own extension for undefined may come from other writers.
  decode: (bytes) => (packr.unpack(bytes) as unknown) ?? null,
};

/** JSON text in UTF-8. `undefined` is written as `null`; what JSON drops is dropped. */
export const json: Codec = {
  name: "json",
  encode(payload) {
    const text: string | undefined = JSON.stringify(payload ?? null);
    if (text === undefined) throw new TypeError(`a ${typeof payload} has no JSON form`);
    return Buffer.from(text);
  },
  decode: (bytes) => JSON.parse(bytes.toString()) as unknown,
};

/** Text in UTF-8, as Redisson's `StringCodec` writes it. Takes strings only. */
export const string: Codec<string> = {
  name: "string",
  encode(payload) {
    if (typeof payload !== "string") {
      throw new TypeError(`the string codec takes strings, got ${typeof payload}`);
    }
    if (!payload.isWellFormed()) throw new TypeError("the string is not well-formed Unicode");
    return Buffer.from(payload);
  },
  decode: (bytes) => utf8.decode(bytes),
};

/** Bytes as they are, as Redisson's `ByteArrayCodec` writes them. Gives a `Buffer` of its own. */
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

// Invalid UTF-8 is an error, not a replacement character: a wrong codec shows at once.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

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
