/**
 * Jackson's type ids, as Redisson's `JsonJacksonCodec` and `MsgPackJacksonCodec` turn them on
 * (default typing `NON_FINAL`, as a property).
 *
 * Java reads and writes every value whose declared type is `Object` (a payload, what is in a
 * collection or in a map, a field that is declared so) with its class:
 * - strings, booleans, ints and doubles stand as they are;
 * - maps and beans carry a property `@class`;
 * - all else is an array of two, the class and the value: `["java.lang.Long",5]`,
 *   `["java.util.ArrayList",[1,2]]`, `["java.util.Date",1000]`.
 * In the fields of a bean the declared type decides: a `Long`, `Date` or `List` has its class, a
 * `long`, `int`, `String`, `byte[]`, `String[]` has none.
 */
import { UnreadableError } from "../codecs/unreadable-error.ts";
import { isClassName, isNatural, isWrapper } from "./java-class.ts";
import { JavaValue } from "./java-value.ts";

/** How a codec with type ids treats JavaScript's objects. */
export interface JacksonOptions {
  /**
   * The Java class to write an object as: its fully qualified name, or undefined for a map
   * (`java.util.LinkedHashMap`). Called for plain objects and instances of classes.
   *
   * Java makes an instance of whatever class is named. Do not let it come from untrusted input.
   */
  readonly classOf?: (value: object) => string | undefined;

  /**
   * Whether what Java wrote keeps its class, so that it can be written back with the same.
   *
   * What JavaScript has no type of its own for then comes as a {@link JavaValue}: beans, and
   * collections other than `ArrayList` and `LinkedHashMap`; a `Long` comes as a `bigint`. Defaults to
   * `false`: plain objects, arrays and numbers.
   */
  readonly keepTypes?: boolean;
}

/** What a writer of JSON or MessagePack is given: type ids are ordinary strings by now. */
export type Tree =
  | null
  | boolean
  | string
  | number
  | bigint
  | Uint8Array
  | readonly Tree[]
  | ReadonlyMap<string, Tree>;

/** Puts type ids in and takes them out. */
export class JavaTypes {
  readonly #classOf: (value: object) => string | undefined;
  readonly #keepTypes: boolean;
  readonly #isText: boolean;

  /**
   * @param isText whether the format has no bytes, no NaN and no infinities of its own.
   * @throws {TypeError} if an option is not legal.
   */
  constructor(options: JacksonOptions, isText: boolean) {
    const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
    if (unknown !== undefined) {
      throw new TypeError(`codec option must be one of ${OPTIONS.join(", ")}, got "${unknown}"`);
    }
    const { classOf = () => undefined, keepTypes = false } = options;
    if (typeof classOf !== "function") {
      throw new TypeError(`classOf must be a function, got ${typeof classOf}`);
    }
    if (typeof keepTypes !== "boolean") {
      throw new TypeError(`keepTypes must be a boolean, got ${typeof keepTypes}`);
    }
    this.#classOf = classOf;
    this.#keepTypes = keepTypes;
    this.#isText = isText;
  }

  /**
   * A payload with its type ids.
   *
   * @throws {TypeError | RangeError} for what has no Java form.
   */
  toJava(payload: unknown): Tree {
    return this.#toJava(payload, OBJECT, 0);
  }

  /** A payload without its type ids. */
  fromJava(value: unknown): unknown {
    return this.#fromJava(value, 0);
  }

  #toJava(value: unknown, position: Position, depth: number): Tree {
    if (depth > MAX_DEPTH) {
      throw new RangeError(`the payload is nested more than ${MAX_DEPTH} deep, or holds itself`);
    }
    switch (typeof value) {
      case "undefined":
        return null;
      case "string":
      case "boolean":
        return value;
      case "number":
        if (Number.isFinite(value) || !this.#isText) return value;
        return position === FIELD ? String(value) : ["java.lang.Double", String(value)];
      case "bigint": {
        const isLong = BigInt.asIntN(64, value) === value;
        return [isLong ? "java.lang.Long" : "java.math.BigInteger", value];
      }
      case "object":
        return value === null ? null : this.#objectToJava(value, position, depth);
      default:
        throw new TypeError(`a ${typeof value} has no Java form`);
    }
  }

  #objectToJava(value: object, position: Position, depth: number): Tree {
    if (value instanceof JavaValue) return this.#javaValue(value, depth);
    if (value instanceof Date) return ["java.util.Date", milliseconds(value)];
    if (value instanceof Uint8Array) {
      const plain = this.#plainBytes(value);
      // A field declared byte[] takes no class; as a whole payload, bytes speak for themselves.
      const isPlain = position === FIELD || (depth === 0 && !this.#isText);
      return isPlain ? plain : ["[B", plain];
    }
    if (ArrayBuffer.isView(value)) throw new TypeError("bytes must be a Uint8Array");
    if (Array.isArray(value)) return ["java.util.ArrayList", this.#items(value, depth)];
    if (value instanceof Set) return ["java.util.LinkedHashSet", this.#items([...value], depth)];
    if (value instanceof Map) return this.#fields(MAP, value, depth);
    if ("toJSON" in value && typeof value.toJSON === "function") {
      return this.#toJava(value.toJSON(), position, depth + 1);
    }
    const javaClass = this.#classOf(value);
    if (javaClass === undefined) return this.#fields(MAP, Object.entries(value), depth);
    if (typeof javaClass !== "string" || !isClassName(javaClass)) {
      throw new TypeError("classOf must answer the name of a Java class, or undefined");
    }
    const fields = Object.entries(value).filter(([key]) => key !== "@class");
    return this.#fields(javaClass, fields, depth);
  }

  /** What the user has given a class, or has said to have none. */
  #javaValue({ javaClass, value }: JavaValue, depth: number): Tree {
    if (javaClass !== undefined && !isClassName(javaClass)) {
      throw new TypeError("a JavaValue must have the name of a Java class, or undefined");
    }
    if (isPlainObject(value)) return this.#fields(javaClass, Object.entries(value), depth);
    if (value instanceof Map) return this.#fields(javaClass, value, depth);
    let plain: Tree;
    if (Array.isArray(value)) plain = this.#items(value, depth);
    else if (value instanceof Set) plain = this.#items([...value], depth);
    else if (value instanceof Date) plain = milliseconds(value);
    else if (value instanceof Uint8Array) plain = this.#plainBytes(value);
    else if (typeof value === "bigint") plain = value;
    else if (typeof value === "number" && this.#isText && !Number.isFinite(value)) {
      plain = String(value);
    } else if (isScalar(value)) plain = value;
    else throw new TypeError("a JavaValue must hold a plain value");
    return javaClass === undefined || plain === null ? plain : [javaClass, plain];
  }

  #items(items: readonly unknown[], depth: number): Tree[] {
    return Array.from(items, (item) => this.#toJava(item, OBJECT, depth + 1));
  }

  #fields(
    javaClass: string | undefined,
    entries: Iterable<readonly [unknown, unknown]>,
    depth: number,
  ): Tree {
    // In a map all values are declared as Object; in a bean there is no telling.
    const position = javaClass?.startsWith("java.util.") ? OBJECT : FIELD;
    const fields = new Map<string, Tree>();
    if (javaClass !== undefined) fields.set("@class", javaClass);
    for (const [key, value] of entries) {
      if (typeof key !== "string" && typeof key !== "number") {
        throw new TypeError(`the keys of a Map must be strings or numbers, got a ${typeof key}`);
      }
      if (key === "@class") {
        // Who can choose a class can make Java run its code.
        throw new TypeError("a payload must not have a property @class: use classOf or JavaValue");
      }
      if (value !== undefined) fields.set(String(key), this.#toJava(value, position, depth + 1));
    }
    return fields;
  }

  #plainBytes(bytes: Uint8Array): Tree {
    if (!this.#isText) return bytes;
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
  }

  #fromJava(value: unknown, depth: number): unknown {
    // Jackson has the same limit.
    if (depth > MAX_DEPTH) throw new UnreadableError(`nested more than ${MAX_DEPTH} deep`);
    if (Array.isArray(value)) return this.#arrayFromJava(value, depth);
    if (!isPlainObject(value)) return value;
    const { "@class": javaClass } = value;
    // fromEntries defines properties, so that a key like __proto__ is one of its own.
    const fields = Object.fromEntries(
      Object.entries(value)
        .filter(([key]) => key !== "@class" || typeof javaClass !== "string")
        .map(([key, each]) => [key, this.#fromJava(each, depth + 1)]),
    );
    if (!this.#keepTypes || javaClass === MAP) return fields;
    return new JavaValue(typeof javaClass === "string" ? javaClass : undefined, fields);
  }

  #arrayFromJava(array: readonly unknown[], depth: number): unknown {
    const [javaClass, value] = array;
    // A List.of("a", "b") or a String[] has no class either, and Java itself cannot read those back.
    if (array.length !== 2 || typeof javaClass !== "string" || !isWrapper(javaClass, value)) {
      const items = array.map((item) => this.#fromJava(item, depth + 1));
      return this.#keepTypes ? new JavaValue(undefined, items) : items;
    }
    const plain = Array.isArray(value)
      ? value.map((item) => this.#fromJava(item, depth + 1))
      : this.#scalarFromJava(javaClass, value, depth);
    if (!this.#keepTypes || plain === null) return plain;
    if (javaClass === "java.lang.Long") return BigInt(plain as number | bigint);
    return isNatural(javaClass, plain) ? plain : new JavaValue(javaClass, plain);
  }

  #scalarFromJava(javaClass: string, value: unknown, depth: number): unknown {
    if (value === null) return null;
    switch (javaClass) {
      case "java.util.Date":
      case "java.sql.Timestamp": {
        const date = new Date(typeof value === "string" ? value : Number(value));
        if (Number.isNaN(date.getTime())) throw new UnreadableError("a date is out of range");
        return date;
      }
      case "java.lang.Double":
      case "java.lang.Float":
        return Number(value);
      case "[B":
        return typeof value === "string" ? Buffer.from(value, "base64") : value;
      default:
        return this.#fromJava(value, depth + 1);
    }
  }
}

const OPTIONS = ["classOf", "keepTypes"];

/** Java's map that keeps the order of its keys, as JavaScript's objects do. */
const MAP = "java.util.LinkedHashMap";

type Position = typeof OBJECT | typeof FIELD;

/** Declared as `Object`: each value has its class. */
const OBJECT = "object";

/** A field of a bean, whose declared type we do not know. */
const FIELD = "field";

const MAX_DEPTH = 1000;

function isScalar(value: unknown): value is string | boolean | number | null {
  return ["string", "boolean", "number"].includes(typeof value) || value === null;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function milliseconds(date: Date): number {
  const at = date.getTime();
  if (Number.isNaN(at)) throw new RangeError("the date is invalid");
  return at;
}
