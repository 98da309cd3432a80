/**
 * Checks of users' arguments. Each throws an error that names the argument, the rule and the value, before anything is
 * sent.
 */
import { types } from "node:util";
import { isAbortSignal } from "../time/abort.ts";
import { localIn, Zone } from "../time/zone.ts";
import { wayOutOf } from "../words/did-you-mean.ts";
import { isMessageId, type MessageId } from "./message/message.ts";

/** How a check of a duration ends its error. */
export interface DurationHints {
  /** How to call the method, for who gave another type. */
  readonly call?: string;
  /** What to do with an instant. Defaults to subtracting `Date.now()`. */
  readonly instant?: string;
  /** What to do without a limit. */
  readonly endless?: string;
  /** Whether the bound is lifted, where an option can lift it. */
  readonly anyTime?: boolean;
}

/**
 * Checks a duration in milliseconds. Fractions are legal. One of more than 30 years is nearly always an instant.
 *
 * @throws {TypeError} if it is not a number.
 * @throws {RangeError} if it is NaN, negative or too long.
 */
export function checkDuration(
  name: string,
  value: unknown,
  { call, instant = "subtract Date.now()", endless, anyTime }: DurationHints = {},
): asserts value is number {
  const most = anyTime === true ? MAX_TIME : THIRTY_YEARS;
  // First, since each offer comes here.
  if (typeof value === "number" && value >= 0 && value <= most) return;
  const ifInstant = `; an instant? ${instant}`;
  if (typeof value !== "number") {
    const wayOut = types.isDate(value) ? ifInstant : call === undefined ? "" : `; call ${call}`;
    throw new TypeError(`${name} must be a number of milliseconds, got ${kindOf(value)}${wayOut}`);
  }
  const isInstant = most === THIRTY_YEARS && value > most && value < Infinity;
  const rule = `between 0 and ${most} ms${most === THIRTY_YEARS ? " (30 years)" : ""}`;
  const ifEndless = value === Infinity && endless !== undefined ? `; no limit? ${endless}` : "";
  const wayOut = isInstant ? `${ifInstant}${liftedBy(anyTime)}` : ifEndless;
  throw new RangeError(`${name} must be ${rule}, got ${value}${wayOut}`);
}

/** How a check of an instant ends its error. */
interface InstantHints {
  /** What to do with a delay. */
  readonly delay?: string;
  /** Whether the bounds are lifted, where an option can lift them. */
  readonly anyTime?: boolean;
}

/**
 * Checks an instant, a Date, epoch milliseconds or a local time, and returns it in whole epoch milliseconds. It rounds up,
 * so that no message is early.
 *
 * A number before 1973 is nearly always a delay or in seconds, and one after 9999 in microseconds. A Date before 1973
 * is an instant for certain, so it is refused only in the four months of 1970 where it was made from seconds.
 *
 * @throws {TypeError} if it is neither a Date nor a number nor a local time.
 * @throws {RangeError} if it is an invalid date, NaN, before 1970 or implausible, or a time or zone that there is not.
 */
export function checkInstant(
  name: string,
  value: unknown,
  { delay, anyTime }: InstantHints = {},
): number {
  if (types.isDate(value)) return checkDate(name, value, anyTime);
  if (typeof value === "object" && value !== null && "local" in value)
    return checkLocalTime(name, value);
  if (typeof value !== "number") {
    throw new TypeError(
      `${name} must be a Date, a number of epoch milliseconds or { local, timeZone }, got ${kindOf(value)}${typeof value === "string" ? "; convert it with new Date" : ""}`,
    );
  }
  const [least, most] = anyTime === true ? [0, MAX_TIME] : [YEAR_1973, YEAR_9999];
  if (value >= least && value <= most) return Math.ceil(value);
  const ifDelay = value < least && delay !== undefined ? `; a delay? ${delay}` : "";
  const years = anyTime === true ? "" : " (1973 to 9999)";
  throw new RangeError(
    `${name} must be between ${least} and ${most} epoch milliseconds${years}, got ${value}${ifDelay}; epoch is in milliseconds${liftedBy(anyTime)}`,
  );
}

function checkLocalTime(name: string, time: object): number {
  checkOptions(`property of ${name}`, time, ["local", "timeZone"]);
  const { local: text, timeZone } = time as {
    readonly local?: unknown;
    readonly timeZone?: unknown;
  };
  const rule = `${name}.local must be a local time such as "2026-12-24T09:00"`;
  if (typeof text !== "string") throw new TypeError(`${rule}, got ${kindOf(text)}`);
  const local = localIn(text);
  if (local === undefined) {
    const isInstant = /T.*(Z|[+-]\d\d:?\d\d)$/.test(text);
    const wayOut = isInstant ? "; it has an offset: pass new Date of it" : "";
    throw new RangeError(`${rule}, got ${JSON.stringify(text)}${wayOut}`);
  }
  return checkDate(name, new Date(checkZone(`${name}.timeZone`, timeZone).instantOf(local)), true);
}

/**
 * Checks the name of a time zone, and returns the zone.
 *
 * @throws {TypeError} if it is not a string.
 * @throws {RangeError} if the runtime does not know it.
 */
export function checkZone(name: string, value: unknown): Zone {
  const rule = `${name} must be the name of a time zone such as "Europe/Berlin"`;
  if (typeof value !== "string") throw new TypeError(`${rule}, got ${kindOf(value)}`);
  const zone = Zone.named(value);
  if (zone === undefined) throw new RangeError(`${rule}, got ${JSON.stringify(value)}`);
  return zone;
}

/**
 * Checks a day of the calendar, such as `"2026-12-25"`.
 *
 * @throws {TypeError} if it is not a string.
 * @throws {RangeError} if there is no such day.
 */
export function checkDay(name: string, value: unknown): asserts value is string {
  const rule = `${name} must be a day that exists, such as "2026-12-25"`;
  if (typeof value !== "string") throw new TypeError(`${rule}, got ${kindOf(value)}`);
  if (localIn(`${value}T00:00`) === undefined) {
    throw new RangeError(`${rule}, got ${JSON.stringify(value)}`);
  }
}

function checkDate(name: string, date: Date, anyTime: boolean | undefined): number {
  const at = date.getTime();
  if (Number.isNaN(at)) throw new RangeError(`${name} must be a valid date, got Invalid Date`);
  const got = `got ${date.toISOString()}`;
  // Redisson's loop breaks on negative scores.
  if (at < 0) throw new RangeError(`${name} must not be before 1970, ${got}`);
  const isOfSeconds = at >= SECONDS_OF_2001 && at <= SECONDS_OF_2286;
  if (anyTime === true || !(isOfSeconds || at > YEAR_9999)) return at;
  const unit = isOfSeconds ? "seconds" : "microseconds";
  throw new RangeError(
    `${name} must be a plausible date, ${got}; made from ${unit}? a Date takes milliseconds${liftedBy(anyTime)}`,
  );
}

function liftedBy(anyTime: boolean | undefined): string {
  return anyTime === false ? "; if it is meant, set anyTime" : "";
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
  unit = "",
): asserts value is number {
  const rule = `a whole number between ${least} and ${most}${unit}`;
  if (typeof value !== "number") {
    throw new TypeError(`${name} must be a whole number, got ${kindOf(value)}`);
  }
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RangeError(`${name} must be ${rule}, got ${value}`);
  }
}

/**
 * Checks a business key.
 *
 * @throws {TypeError | RangeError} unless it is a well-formed string of 1 to 200 bytes that is not a `MessageId`.
 */
export function checkKey(value: unknown, name = "key"): asserts value is string {
  if (typeof value !== "string") {
    throw new TypeError(`${name} must be a string, got ${kindOf(value)}${wayToKey(value)}`);
  }
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

/** What to do with an object where a key or an id belongs. */
function wayToKey(value: unknown): string {
  if (types.isPromise(value)) return "; await it";
  if (typeof value === "number") return "; convert it with String";
  const { id } = (value ?? {}) as { readonly id?: unknown };
  return typeof id === "string" && isMessageId(id) ? "; of the result of an offer pass its id" : "";
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
  const got = typeof value === "string" ? JSON.stringify(value) : kindOf(value) + wayToKey(value);
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
    // A string is not shown: it may be a URL with a password. Nor is the source of a function.
    const isPlain = typeof options !== "string" && typeof options !== "function";
    const got = isPlain ? String(options) : `a ${typeof options}`;
    throw new TypeError(`${what}s must be an object, got ${got}; such as { ${known[0]} }`);
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(
      `${what} must be one of ${known.join(", ")}, got "${unknown}"${wayOutOf(unknown, known)}`,
    );
  }
}

/**
 * Checks the signal of a call.
 *
 * @throws {TypeError} unless it is an AbortSignal or undefined.
 */
export function checkSignal(value: unknown): asserts value is AbortSignal | undefined {
  if (value === undefined || isAbortSignal(value)) return;
  const got = value instanceof AbortController ? "a controller; pass its signal" : kindOf(value);
  throw new TypeError(`signal must be an AbortSignal, got ${got}`);
}

/**
 * Checks a callback.
 *
 * @throws {TypeError} unless it is a function.
 */
export function checkFunction(name: string, value: unknown): void {
  if (typeof value === "function") return;
  throw new TypeError(`${name} must be a function, got ${kindOf(value)}`);
}

/**
 * Checks that a value is iterable. A string is refused: its letters are never what the caller means.
 *
 * @throws {TypeError} naming the value's type.
 */
export function checkIterable(name: string, value: unknown): asserts value is Iterable<unknown> {
  const isIterable = typeof value === "object" && value !== null && Symbol.iterator in value;
  if (isIterable) return;
  throw new TypeError(
    `${name} must be an array or another iterable object, got ${kindOf(value)}; put a single one into an array`,
  );
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
const MAX_TIME = 8_990_000_000_000_000;

/** The present epoch milliseconds are almost twice as many. */
const THIRTY_YEARS = 30 * 365.25 * 86_400_000;

/** 3 March 1973. The present epoch seconds are a fiftieth of it. */
export const YEAR_1973 = 100_000_000_000;

/** The last millisecond of the year 9999. The present epoch microseconds are seven times as many. */
export const YEAR_9999 = 253_402_300_799_999;

/** Epoch seconds of the years 2001 to 2286. */
const SECONDS_OF_2001 = 1_000_000_000;
const SECONDS_OF_2286 = 10_000_000_000;

/** The type of a refused value. The value itself may be a payload, if the arguments were swapped. */
function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (types.isDate(value)) return "a Date";
  if (types.isPromise(value)) return "a Promise";
  const isNumeric = typeof value === "string" && value.trim() !== "" && !Number.isNaN(+value);
  return isNumeric ? "string; convert it with Number" : typeof value;
}

/**
 * Checks a reason that a user gives in words.
 *
 * @throws {TypeError | RangeError} unless it is a text of 1 to 500 characters.
 */
export function checkReason(reason: unknown): asserts reason is string {
  if (typeof reason !== "string")
    throw new TypeError(`reason must be a string, got ${String(reason)}`);
  if (reason === "" || reason.length > MAX_REASON)
    throw new RangeError(`reason must have 1 to ${MAX_REASON} characters, got ${reason.length}`);
}

/** Characters. */
const MAX_REASON = 500;
