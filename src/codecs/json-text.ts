/**
 * JSON text in which whole numbers of any size survive.
 *
 * JSON itself has no limit, and Java's longs have 64 bits; a JavaScript number holds each whole number
 * below 2^53 only. From there on it is a `bigint` here, both ways.
 */
import { randomUUID } from "node:crypto";
import { UnreadableError } from "./unreadable-error.ts";

/**
 * `JSON.parse`, but a whole number from 2^53 on becomes a `bigint`, and errors do not quote the text.
 *
 * @throws {UnreadableError} if the text is not JSON, is nested too deeply, or has a whole number of more
 * than 1000 digits.
 */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text) as unknown;
  } catch {
    // V8 quotes what it read, and a payload must not reach a log.
    throw new UnreadableError("the bytes are not JSON");
  }
  // Numbers of up to 15 digits are exact, and fractions cannot be more so: most texts are done here.
  if (!MANY_DIGITS.test(text)) return value;
  try {
    return parseWithBigints(text);
  } catch {
    throw new UnreadableError("it is nested too deeply, or a number has more than 1000 digits");
  }
}

/**
 * `JSON.stringify`, but a `bigint` is written digit by digit, and a whole number from 2^53 on with an
 * exponent: what has all its digits is meant to the last of them.
 *
 * @throws {TypeError} for cycles, as `JSON.stringify` does.
 */
export function stringifyJson(value: unknown): string | undefined {
  try {
    // Nearly always this is all: a replacer would cost every payload a multiple.
    const text: string | undefined = JSON.stringify(value);
    if (text === undefined || !MANY_DIGITS.test(text)) return text;
  } catch (error) {
    // So it refuses a bigint.
    if (!(error instanceof TypeError)) throw error;
  }
  return stringifyLargeNumbers(value);
}

/** Not the fraction of a number, and not the beginning of a string. */
const MANY_DIGITS = /(?<![\d."])\d{16}/;

/** Strings, so that they are stepped over, and numbers. */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

const WHOLE = /^-?\d{16,}$/;

// Jackson has the same limit.
const MAX_DIGITS = 1000;

/** For a text that is known to be JSON. */
function parseWithBigints(text: string): unknown {
  // Nobody can guess it, so no string of the text begins so.
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
