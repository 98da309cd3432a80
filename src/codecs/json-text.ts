import { randomUUID } from "node:crypto";
import { UnreadableError } from "./unreadable-error.ts";

// JSON text in which whole numbers survive. JSON itself has no limit, and Java's longs have 64 bits, but a JavaScript
// number holds every whole number only up to 2^53. From there on, a number with all its digits is a `bigint` here.

/**
 * Like `JSON.parse`, but a whole number from 2^53 on becomes a `bigint`, and errors do not quote the text.
 *
 * @throws {UnreadableError} if the text is not JSON, is nested too deeply, or has a whole number of more than 1000
 * digits.
 */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text) as unknown;
  } catch {
    // V8's error quotes the text, and a payload must not reach a log.
    throw new UnreadableError("the bytes are not JSON");
  }
  // Whole numbers of up to 15 digits are exact, so most texts are done here.
  if (!MANY_DIGITS.test(text)) return value;
  try {
    return parseWithBigints(text);
  } catch {
    throw new UnreadableError("it is nested too deeply, or a number has more than 1000 digits");
  }
}

/**
 * Like `JSON.stringify`, but a `bigint` is written digit by digit, and a whole number from 2^53 on with an exponent.
 * Thus all digits of a number that has no exponent are significant.
 *
 * @throws {TypeError} for cycles, as `JSON.stringify` does.
 */
export function stringifyJson(value: unknown): string | undefined {
  try {
    // This suffices for nearly every payload. A replacer would make each of them several times as expensive.
    const text: string | undefined = JSON.stringify(value);
    if (text === undefined || !MANY_DIGITS.test(text)) return text;
  } catch (error) {
    // JSON.stringify throws a TypeError for a bigint, too.
    if (!(error instanceof TypeError)) throw error;
  }
  return stringifyLargeNumbers(value);
}

/** Sixteen digits in a row, except in the fraction of a number or at the beginning of a string. */
const MANY_DIGITS = /(?<![\d."])\d{16}/;

/** Matches numbers, and strings too, so that numbers inside of strings are skipped. */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

const WHOLE = /^-?\d{16,}$/;

// The same limit as Jackson's.
const MAX_DIGITS = 1000;

/** Parses a text that is known to be JSON. */
function parseWithBigints(text: string): unknown {
  // Unguessable, so no string in the text begins with it.
  const mark = randomUUID();
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    WHOLE.test(token) && isBeyondNumbers(token) ? `"${mark}${token}"` : token,
  );
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}

function isBeyondNumbers(digits: string): boolean {
  if (digits.length > MAX_DIGITS) throw new RangeError("too many digits");
  const value = BigInt(digits);
  return value >= 2n ** 53n || value <= -(2n ** 53n);
}

function stringifyLargeNumbers(value: unknown): string | undefined {
  const mark = randomUUID();
  const marked: string | undefined = JSON.stringify(value, (_, each: unknown) => {
    if (typeof each === "bigint") return `${mark}${each}`;
    const isLarge = Number.isInteger(each) && !Number.isSafeInteger(each);
    return isLarge ? `${mark}${(each as number).toExponential()}` : each;
  });
  return marked?.replaceAll(new RegExp(`"${mark}([^"]+)"`, "g"), "$1");
}
