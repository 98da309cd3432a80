/**
 * Jackson's type ids, as Redisson's `JsonJacksonCodec` and `MsgPackJacksonCodec` turn them on
 * (default typing `NON_FINAL`, as a property).
 *
 * Java reads and writes every value whose declared type is `Object` (a payload, an element of a collection or map, a
 * field declared as `Object`) with its class:
 * - strings, booleans, ints and doubles are plain;
 * - maps and beans have a property `@class`;
 * - any other value is an array of two, the class and the value: `["java.lang.Long",5]`,
 *   `["java.util.ArrayList",[1,2]]`, `["java.util.Date",1000]`.
 * In the fields of a bean the declared type decides: a `Long`, `Date` or `List` has its class, a `long`, `int`,
 * `String`, `byte[]` or `String[]` has none.
 */
import { types } from "node:util";
import { hasPlainPrototype, kindOf } from "../../codecs/plain-data.ts";
import { UnreadableError } from "../../codecs/unreadable-error.ts";
import { wayOutOf } from "../../words/did-you-mean.ts";
import { UnwritableError } from "../../codecs/unwritable-error.ts";
import { isClassName, isNatural, isWrapper } from "./java-class.ts";
import { isJavaValue, JavaValue } from "./java-value.ts";

/** How a codec with type ids treats JavaScript objects. */
export interface JacksonOptions {
  /**
   * Returns the fully qualified name of the Java class to write an object as, or undefined for a map
   * (`java.util.LinkedHashMap`). Called for plain objects and instances of classes. Defaults to maps, which only plain
   * objects are written as: of an instance of a class, an `Error` for example, a map would hold a part at best.
   *
   * Java instantiates whatever class is named, so the name must not come from untrusted input.
   */
  readonly classOf?: (value: object) => string | undefined;

  /**
   * Whether values that Java wrote keep their classes, so that they can be written back with the same.
   *
   * Values without a JavaScript type of their own are then read as {@link JavaValue}: beans, and collections other than
   * `ArrayList` and `LinkedHashMap`. A `Long` is read as a `bigint`. Defaults to `false`: plain objects, arrays and
   * numbers.
   */
  readonly keepTypes?: boolean;
}

/** The input of a writer of JSON or MessagePack, in which type ids are ordinary strings. */
export type Tree =
  | null
  | boolean
  | string
  | number
  | bigint
  | Uint8Array
  | readonly Tree[]
  | ReadonlyMap<string, Tree>;

/** Adds type ids to payloads, and removes them. */
export class JavaTypes {
  readonly #classOf: (value: object) => string | undefined;
  readonly #keepTypes: boolean;
  readonly #isText: boolean;

  /**
   * @param isText whether the format is text: without bytes, NaN and infinities.
   * @throws {TypeError} if an option is not legal.
   */
  constructor(options: JacksonOptions, isText: boolean) {
    const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
    if (unknown !== undefined) {
      throw new TypeError(
        `codec option must be one of ${OPTIONS.join(", ")}, got "${unknown}"${wayOutOf(unknown, OPTIONS)}`,
      );
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
   * @throws {TypeError | RangeError} if a value has no Java form.
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
      throw new RangeError(`the payload is nested more than ${MAX_DEPTH} deep, or contains itself`);
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
    if (isJavaValue(value)) return this.#javaValue(value, depth);
    if (types.isDate(value)) return ["java.util.Date", milliseconds(value)];
    if (types.isUint8Array(value)) {
      const plain = this.#plainBytes(value);
      // A field declared byte[] has no class. A whole payload of bytes needs none, unless the format is text.
      const isPlain = position === FIELD || (depth === 0 && !this.#isText);
      return isPlain ? plain : ["[B", plain];
    }
    if (ArrayBuffer.isView(value)) throw new TypeError("bytes must be a Uint8Array");
    if (Array.isArray(value)) return ["java.util.ArrayList", this.#items(value, depth)];
    if (types.isSet(value)) return ["java.util.LinkedHashSet", this.#items([...value], depth)];
    if (types.isMap(value)) return this.#fields(MAP, value, depth);
    if ("toJSON" in value && typeof value.toJSON === "function") {
      return this.#toJava(value.toJSON(), position, depth + 1);
    }
    if (types.isPromise(value)) throw withoutForm(value);
    const javaClass = this.#classOf(value);
    if (javaClass === undefined) {
      if (!hasPlainPrototype(value)) throw withoutForm(value);
      return this.#fields(MAP, Object.entries(value), depth);
    }
    if (typeof javaClass !== "string" || !isClassName(javaClass)) {
      throw new TypeError("classOf must return the name of a Java class, or undefined");
    }
    const fields = Object.entries(value).filter(([key]) => key !== "@class");
    return this.#fields(javaClass, fields, depth);
  }

  /** A value for which the user has chosen the class, or none. */
  #javaValue({ javaClass, value }: JavaValue, depth: number): Tree {
    if (javaClass !== undefined && !isClassName(javaClass)) {
      throw new TypeError("a JavaValue must have the name of a Java class, or undefined");
    }
    if (isPlainObject(value)) return this.#fields(javaClass, Object.entries(value), depth);
    if (types.isMap(value)) return this.#fields(javaClass, value, depth);
    let plain: Tree;
    if (Array.isArray(value)) plain = this.#items(value, depth);
    else if (types.isSet(value)) plain = this.#items([...value], depth);
    else if (types.isDate(value)) plain = milliseconds(value);
    else if (types.isUint8Array(value)) plain = this.#plainBytes(value);
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
    // The values of a map are declared as Object; the declared types of a bean's fields are unknown.
    const position = javaClass?.startsWith("java.util.") ? OBJECT : FIELD;
    const fields = new Map<string, Tree>();
    if (javaClass !== undefined) fields.set("@class", javaClass);
    for (const [key, value] of entries) {
      if (typeof key !== "string" && typeof key !== "number") {
        throw new TypeError(`the keys of a Map must be strings or numbers, got a ${typeof key}`);
      }
      if (key === "@class") {
        // Anyone who chooses a class can make Java run its code.
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
    // fromEntries defines properties, so a key such as __proto__ becomes an own property.
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
    // List.of("a", "b") and String[] have no class either; Java itself cannot read those back.
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

/** Java's map that keeps the order of its keys, as JavaScript objects do. */
const MAP = "java.util.LinkedHashMap";

type Position = typeof OBJECT | typeof FIELD;

/** Declared as `Object`: each value has a class. */
const OBJECT = "object";

/** A field of a bean, whose declared type is unknown. */
const FIELD = "field";

const MAX_DEPTH = 1000;

function isScalar(value: unknown): value is string | boolean | number | null {
  return ["string", "boolean", "number"].includes(typeof value) || value === null;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && hasPlainPrototype(value);
}

/** The error about an object whose content no Java class is named for. */
function withoutForm(value: object): UnwritableError {
  return new UnwritableError(
    `${kindOf(value)} has no Java form: use a plain object, classOf or JavaValue`,
  );
}

function milliseconds(date: Date): number {
  const at = date.getTime();
  if (Number.isNaN(at)) throw new RangeError("the date is invalid");
  return at;
}
