import { types } from "node:util";
import { pathText, type PathStep } from "./path.ts";
import { UnwritableError } from "./unwritable-error.ts";

/**
 * Returns a payload that MessagePack can hold: the same object, or a copy without the properties that JSON leaves out,
 * and with the results of `toJSON`.
 *
 * A cheap check comes first. Only a payload that fails it is copied.
 *
 * @throws {UnwritableError} for a value that would not be read as it was written; names its path and kind.
 */
export function plainData(payload: unknown): unknown {
  if (isPlain(payload)) return payload;
  const copy = copied(payload, []);
  return copy === undefined ? null : copy;
}

function isPlain(value: unknown): boolean {
  switch (typeof value) {
    case "string":
      return value.isWellFormed();
    case "number":
    case "boolean":
    case "bigint":
      return true;
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (Array.isArray(value)) {
    // By index, which is faster than iteration. Both read a hole as undefined.
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i])) return false;
    return true;
  }
  if (hasPlainPrototype(value)) {
    // Twice as fast as Object.keys. Inherited properties, if there are any, are merely checked, too.
    for (const key in value) {
      if (key === PROTO || !key.isWellFormed()) return false;
      if (!isPlain((value as Record<string, unknown>)[key])) return false;
    }
    return true;
  }
  return isScalar(value);
}

/** Whether a value is bytes or a valid date, of this realm: msgpackr knows no others. */
function isScalar(value: object): boolean {
  return value instanceof Uint8Array || (value instanceof Date && !Number.isNaN(value.getTime()));
}

/** Bytes or a valid date of another realm, as those of this one; undefined for other values. */
function scalarFromAbroad(value: object): Uint8Array | Date | undefined {
  if (types.isUint8Array(value)) return Buffer.from(value.buffer, value.byteOffset, value.length);
  if (!types.isDate(value)) return undefined;
  const at = Date.prototype.getTime.call(value);
  return Number.isNaN(at) ? undefined : new Date(at);
}

/**
 * Whether an object is not an instance of a class. Also true for a plain object of another realm, such as a test
 * runner's sandbox, whose `Object.prototype` is another one.
 */
export function hasPlainPrototype(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    prototype === Object.prototype ||
    prototype === null ||
    Object.getPrototypeOf(prototype) === null
  );
}

/** Copies a value; returns undefined for a value that is left out. */
function copied(value: unknown, path: readonly PathStep[]): unknown {
  if (typeof value === "function") throw unwritable("a function", path);
  if (typeof value === "symbol") throw unwritable("a symbol", path);
  if (typeof value === "string" && !value.isWellFormed()) {
    throw unwritable("a text that is not well-formed Unicode", path);
  }
  if (typeof value !== "object" || value === null || isScalar(value)) return value;
  const scalar = scalarFromAbroad(value);
  if (scalar !== undefined) return scalar;
  if ("toJSON" in value && typeof value.toJSON === "function" && !types.isDate(value)) {
    return copied(value.toJSON(String(path.at(-1) ?? "")), path);
  }
  if (Array.isArray(value)) {
    return Array.from(value, (item: unknown, i) => copied(item, [...path, i]) ?? null);
  }
  if (!hasPlainPrototype(value)) throw unwritable(kindOf(value), path);
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    if (key === PROTO) throw unwritable(`a property named ${PROTO}`, path);
    if (!key.isWellFormed())
      throw unwritable("a property with a name that is not well-formed Unicode", path);
    const kept = copied(item, [...path, key]);
    if (kept !== undefined) copy[key] = kept;
  }
  return copy;
}

function unwritable(kind: string, path: readonly PathStep[]): UnwritableError {
  const where = path.length === 0 ? "" : ` at ${pathText(path)}`;
  return new UnwritableError(`${kind}${where} has no MessagePack form`);
}

/** What an object is that is neither plain nor bytes nor a valid date. */
export function kindOf(value: object): string {
  if (types.isDate(value)) return "an invalid Date";
  if (types.isPromise(value)) return "a Promise (await it)";
  const { constructor } = Object.getPrototypeOf(value) as { constructor?: unknown };
  const name = typeof constructor === "function" ? constructor.name : "";
  return name === "" ? "an instance of a class" : `an instance of ${name}`;
}

/** Decoders rename this property, so that a payload cannot set a prototype. */
const PROTO = "__proto__";
