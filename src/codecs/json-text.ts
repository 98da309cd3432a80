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
  // Numbers of up to 15 digits are exact, so most texts are done here.
  if (!MANY_DIGITS.test(text)) return value;
  try {
    return parseWithBigints(text);
  } catch {
    throw new UnreadableError("it is nested too deeply, or a number has more than 1000 digits");
  }
}

/**
 * `JSON.stringify`, but a `bigint` is written as a number, digit by digit.
 *
 * @throws {TypeError} for cycles, as `JSON.stringify` does.
 */
export function stringifyJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // Nearly always there is no bigint, and a replacer would cost every payload a multiple.
    if (!(error instanceof TypeError)) throw error;
    return stringifyWithBigints(value);
  }
}

const MANY_DIGITS = /\d{16}/;

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

function stringifyWithBigints(value: unknown): string | undefined {
  const mark = randomUUID();
  const marked: string | undefined = JSON.stringify(value, (_, each: unknown) =>
    typeof each === "bigint" ? `${mark}${each}` : each,
  );
  return marked?.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1");
}
