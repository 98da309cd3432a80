/**
 * Checks of users' arguments. Each throws an error that names the argument, the rule and the value, before anything is
 * sent.
 */
import { isMessageId, type MessageId } from "./message/message.ts";

/**
 * Checks a duration in milliseconds. Fractions are legal.
 *
 * @throws {TypeError} if it is not a number.
 * @throws {RangeError} if it is NaN, negative, infinite or beyond what a deadline can hold.
 */
export function checkDuration(name: string, value: unknown): asserts value is number {
  if (typeof value !== "number") {
    throw new TypeError(`${name} must be a number of milliseconds, got ${typeof value}`);
  }
  if (!(value >= 0 && value <= MAX_DURATION)) {
    throw new RangeError(`${name} must be between 0 and ${MAX_DURATION} ms, got ${value}`);
  }
}

/**
 * Checks an instant, a Date or epoch milliseconds, and returns it in whole epoch milliseconds. It rounds up, so that no
 * message is early.
 *
 * @throws {TypeError} if it is neither a Date nor a number.
 * @throws {RangeError} if it is an invalid date, NaN, before 1970 or beyond what a deadline can be.
 */
export function checkInstant(name: string, value: unknown): number {
  if (!(value instanceof Date || typeof value === "number")) {
    throw new TypeError(
      `${name} must be a Date or a number of epoch milliseconds, got ${typeof value}`,
    );
  }
  const at = Number(value);
  if (value instanceof Date) {
    if (Number.isNaN(at)) throw new RangeError(`${name} must be a valid date, got Invalid Date`);
    // Redisson's loop breaks on negative scores. A Date cannot reach the upper bound.
    if (at < 0) throw new RangeError(`${name} must not be before 1970, got ${value.toISOString()}`);
  } else if (!(at >= 0 && at <= MAX_DURATION)) {
    throw new RangeError(
      `${name} must be between 0 and ${MAX_DURATION} epoch milliseconds, got ${value}`,
    );
  }
  return Math.ceil(at);
}

/**
 * Checks a whole number from `least` to `most`.
 *
 * @throws {TypeError} if it is not a number.
 * @throws {RangeError} if it is not whole, or out of range.
 */
export function checkWhole(
  name: string,
  value: unknown,
  least: number,
  most: number,
): asserts value is number {
  if (typeof value !== "number") {
    throw new TypeError(`${name} must be a whole number, got ${typeof value}`);
  }
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RangeError(
      `${name} must be a whole number between ${least} and ${most}, got ${value}`,
    );
  }
}

/**
 * Checks a business key.
 *
 * @throws {TypeError | RangeError} unless it is a well-formed string of 1 to 200 bytes that is not a `MessageId`.
 */
export function checkKey(value: unknown, name = "key"): asserts value is string {
  if (typeof value !== "string")
    throw new TypeError(`${name} must be a string, got ${typeof value}`);
  if (!value.isWellFormed()) throw new TypeError(`${name} must be well-formed Unicode`);
  const bytes = Buffer.byteLength(value);
  if (bytes === 0 || bytes > MAX_KEY_BYTES) {
    throw new RangeError(`${name} must have 1 to ${MAX_KEY_BYTES} bytes of UTF-8, got ${bytes}`);
  }
  if (isMessageId(value)) {
    throw new TypeError(
      `${name} must not look like a message id (<deadline>-<hex>), got "${value}"`,
    );
  }
}

/** @throws {TypeError | RangeError} unless it is a message id or a legal business key. */
export function checkIdOrKey(value: unknown): asserts value is string {
  if (typeof value !== "string" || !isMessageId(value)) checkKey(value);
}

/**
 * Checks a message id where a business key is not legal.
 *
 * @param or says in the error what else is legal, such as `or "all"`.
 * @throws {TypeError} unless it is a message id.
 */
export function checkMessageId(value: unknown, or = ""): asserts value is MessageId {
  if (typeof value === "string" && isMessageId(value)) return;
  const got = typeof value === "string" ? JSON.stringify(value) : typeof value;
  throw new TypeError(`id must be a message id (<deadline>-<hex>)${or && ` ${or}`}, got ${got}`);
}

/**
 * Checks that options are an object with known names. Without this check a misspelt name would be ignored.
 *
 * @param what the name of one option in the error, such as `"take option"`.
 * @throws {TypeError} naming the known options and the unknown one.
 */
export function checkOptions(what: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) {
    // A string is not shown: it may be a URL with a password.
    const got = typeof options === "string" ? "a string" : String(options);
    throw new TypeError(`${what}s must be an object, got ${got}`);
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`${what} must be one of ${known.join(", ")}, got "${unknown}"`);
  }
}

/**
 * Checks the signal of a call.
 *
 * @throws {TypeError} unless it is an AbortSignal or undefined.
 */
export function checkSignal(value: unknown): asserts value is AbortSignal | undefined {
  if (value === undefined || value instanceof AbortSignal) return;
  throw new TypeError(
    `signal must be an AbortSignal, got ${value === null ? "null" : typeof value}`,
  );
}

/**
 * Checks a callback.
 *
 * @throws {TypeError} unless it is a function.
 */
export function checkFunction(name: string, value: unknown): void {
  if (typeof value === "function") return;
  throw new TypeError(`${name} must be a function, got ${typeof value}`);
}

/**
 * Checks that a value is iterable. A string is refused: its letters are never what the caller means.
 *
 * @throws {TypeError} naming the value's type.
 */
export function checkIterable(name: string, value: unknown): asserts value is Iterable<unknown> {
  const isIterable = typeof value === "object" && value !== null && Symbol.iterator in value;
  if (isIterable) return;
  const type = value === null ? "null" : typeof value;
  throw new TypeError(`${name} must be an array or another iterable object, got ${type}`);
}

/**
 * Checks a condition on business keys, `{ prefix }`, and returns the prefix.
 *
 * @throws {TypeError} unless it holds a non-empty string and nothing else. Every key begins with the empty string, so a
 * forgotten value would match all messages.
 */
export function checkWhere(value: unknown): string {
  checkOptions("condition", value, ["prefix"]);
  const { prefix } = value as { readonly prefix?: unknown };
  if (typeof prefix === "string" && prefix !== "") return prefix;
  const got = prefix === "" ? "an empty one" : typeof prefix;
  throw new TypeError(`prefix must be a non-empty string, got ${got}`);
}

const MAX_KEY_BYTES = 200;

// So that a deadline, which adds the server's clock of 13 digits, stays below 9e15, where doubles are exact.
const MAX_DURATION = 8_990_000_000_000_000;
