/**
 * A Java value with its kind, so that an `Integer` differs from a `Long`. Numbers are sent as text, bytes as base64.
 * Values.java has the other half.
 */
export type JavaValue =
  | null
  | { readonly string: string }
  | { readonly boolean: boolean }
  | { readonly byte: string }
  | { readonly short: string }
  | { readonly int: string }
  | { readonly long: string }
  | { readonly float: string }
  | { readonly double: string }
  | { readonly bigInteger: string }
  | { readonly bigDecimal: string }
  | { readonly char: string }
  | { readonly bytes: string }
  /** Epoch milliseconds. */
  | { readonly date: string }
  | { readonly uuid: string }
  | { readonly list: readonly JavaValue[] }
  | { readonly set: readonly JavaValue[] }
  /** A `LinkedHashMap`. A map that Java returns may be of any class. */
  | { readonly map: readonly (readonly [key: JavaValue, value: JavaValue])[] }
  | { readonly hashMap: readonly (readonly [key: JavaValue, value: JavaValue])[] }
  /** Only in results: a class that has no kind, and its `toString()`. */
  | { readonly other: string };

/** Short constructors. */
export const java = {
  string: (text: string): JavaValue => ({ string: text }),
  boolean: (flag: boolean): JavaValue => ({ boolean: flag }),
  int: (value: number): JavaValue => ({ int: String(value) }),
  long: (value: number | bigint): JavaValue => ({ long: String(value) }),
  /** Not for whole numbers, which Java writes as `5.0`. */
  double: (value: number): JavaValue => ({ double: String(value) }),
  bytes: (bytes: Uint8Array): JavaValue => ({ bytes: Buffer.from(bytes).toString("base64") }),
  list: (...items: readonly JavaValue[]): JavaValue => ({ list: items }),
  map: (entries: Readonly<Record<string, JavaValue>>): JavaValue => ({
    map: Object.entries(entries).map(([key, value]) => [{ string: key }, value]),
  }),
};
