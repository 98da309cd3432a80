/**
 * Checks of the arguments that users give. Each throws an error that names the argument, the rule and the
 * value; nothing has been sent then.
 */
import { isMessageId } from "./message.ts";

/**
 * Checks a duration in milliseconds; fractions are legal.
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
 * Checks an instant and returns it in epoch milliseconds, rounded up.
 *
 * @throws {TypeError} if it is not a Date.
 * @throws {RangeError} if it is an invalid date, or before 1970.
 */
export function checkInstant(name: string, value: unknown): number {
  if (!(value instanceof Date)) throw new TypeError(`${name} must be a Date, got ${typeof value}`);
  const at = value.getTime();
  if (Number.isNaN(at)) throw new RangeError(`${name} must be a valid date, got Invalid Date`);
  // Redisson's loop breaks on negative scores. A Date cannot reach the upper bound of 9e15.
  if (at < 0) throw new RangeError(`${name} must not be before 1970, got ${value.toISOString()}`);
  return at;
}

/**
 * Checks a whole number.
 *
 * @throws {RangeError | TypeError} naming the rule and the value.
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
 * @throws {TypeError | RangeError} unless it is a well-formed string of 1 to 200 bytes that no
 * `MessageId` can be mistaken for.
 */
export function checkKey(value: unknown): asserts value is string {
  if (typeof value !== "string") throw new TypeError(`key must be a string, got ${typeof value}`);
  if (!value.isWellFormed()) throw new TypeError("key must be well-formed Unicode");
  const bytes = Buffer.byteLength(value);
  if (bytes === 0 || bytes > MAX_KEY_BYTES) {
    throw new RangeError(`key must have 1 to ${MAX_KEY_BYTES} bytes of UTF-8, got ${bytes}`);
  }
  if (isMessageId(value)) {
    throw new TypeError(`key must not look like a message id (<deadline>-<hex>), got "${value}"`);
  }
}

/** @throws {TypeError | RangeError} unless it is a message id or a legal business key. */
export function checkIdOrKey(value: unknown): asserts value is string {
  if (typeof value !== "string" || !isMessageId(value)) checkKey(value);
}

const MAX_KEY_BYTES = 200;

// Scores stay below 9e15, where doubles are still exact; the server's clock has 13 digits.
const MAX_DURATION = 8_990_000_000_000_000;
