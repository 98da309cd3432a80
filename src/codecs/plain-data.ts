/**
 * Payloads that come back as they were: what MessagePack and JavaScript both have.
 *
 * Looking comes first and costs little. Only a payload with something else in it is copied, or refused.
 */
import { UnwritableError } from "./unwritable-error.ts";

/**
 * A payload that can be written as it is: the same object, or a copy without what JSON leaves out and with
 * what `toJSON` returns.
 *
 * @throws {UnwritableError} naming the place and the kind of what would not come back as it was.
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
    // By index: an iteration over holes finds undefined, too, but takes longer.
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i])) return false;
    return true;
  }
  if (hasPlainPrototype(value)) {
    // Twice as fast as Object.keys. What is inherited, if anything, only makes the looking thorough.
    for (const key in value) {
      if (key === PROTO || !isPlain((value as Record<string, unknown>)[key])) return false;
    }
    return true;
  }
  return isScalar(value);
}

/** Bytes, or a date that is one. */
function isScalar(value: object): boolean {
  return value instanceof Uint8Array || (value instanceof Date && !Number.isNaN(value.getTime()));
}

/**
 * Whether an object is of no class. Not by identity: it may come from another realm, as in tests that run in a
 * sandbox.
 */
export function hasPlainPrototype(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    prototype === Object.prototype ||
    prototype === null ||
    Object.getPrototypeOf(prototype) === null
  );
}

/** A copy of what is not plain; undefined for what is left out. */
function copied(value: unknown, path: readonly (string | number)[]): unknown {
  if (typeof value === "function") throw unwritable("a function", path);
  if (typeof value === "symbol") throw unwritable("a symbol", path);
  if (typeof value === "string" && !value.isWellFormed()) {
    throw unwritable("a text that is not well-formed Unicode", path);
  }
  if (typeof value !== "object" || value === null || isScalar(value)) return value;
  if ("toJSON" in value && typeof value.toJSON === "function" && !(value instanceof Date)) {
    return copied(value.toJSON(String(path.at(-1) ?? "")), path);
  }
  if (Array.isArray(value)) {
    return Array.from(value, (item: unknown, i) => copied(item, [...path, i]) ?? null);
  }
  if (!hasPlainPrototype(value)) throw unwritable(kindOf(value), path);
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    if (key === PROTO) throw unwritable(`a property named ${PROTO}`, path);
    const kept = copied(item, [...path, key]);
    if (kept !== undefined) copy[key] = kept;
  }
  return copy;
}

function unwritable(kind: string, path: readonly (string | number)[]): UnwritableError {
  const place = path.map((step) => {
    if (typeof step === "number") return `[${step}]`;
    // What is no identifier may be data, such as a map's key.
    return IDENTIFIER.test(step) ? `.${step}` : "[...]";
  });
  const where = path.length === 0 ? "" : ` at payload${place.join("")}`;
  return new UnwritableError(`${kind}${where} has no MessagePack form`);
}

function kindOf(value: object): string {
  if (value instanceof Date) return "an invalid Date";
  const { constructor } = Object.getPrototypeOf(value) as { constructor?: unknown };
  const name = typeof constructor === "function" ? constructor.name : "";
  return name === "" ? "an instance of a class" : `an instance of ${name}`;
}

const IDENTIFIER = /^[a-z_$][\w$]{0,60}$/i;

/** Decoders rename it, lest a payload sets a prototype. */
const PROTO = "__proto__";
