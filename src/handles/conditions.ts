import { checkDuration, checkOptions } from "../queue/checks.ts";
import type { OnlyIf } from "../queue/message/only-if.ts";
import type { Offering } from "../queue/offering.ts";

/**
 * Checks the conditions of an offer. `anyTime` accepts a `deliverWithin` that is nearly always a number of seconds.
 *
 * @throws {TypeError | RangeError} naming the option and the rule.
 */
export function checkedConditions(
  { onlyIf, deliverWithin }: { readonly onlyIf?: OnlyIf; readonly deliverWithin?: number },
  anyTime: boolean,
): Pick<Offering, "onlyIf" | "deliverWithin"> {
  if (deliverWithin !== undefined) checkWithin(deliverWithin, anyTime);
  return {
    onlyIf: onlyIf === undefined ? undefined : checkedGuard(onlyIf),
    deliverWithin: deliverWithin === undefined ? undefined : Math.ceil(deliverWithin),
  };
}

function checkWithin(value: number, anyTime: boolean): void {
  checkDuration("deliverWithin", value);
  if (value >= LEAST_WITHIN || anyTime) return;
  const ifSeconds = value > 0 ? `; seconds? write ${value * 1000}` : "";
  throw new RangeError(
    `deliverWithin must be at least ${LEAST_WITHIN} ms, got ${value}${ifSeconds}; every message is moved some milliseconds late, and would be dropped; if it is meant, set anyTime`,
  );
}

/** Milliseconds that a queue needs at a busy moment, or after a failover that takes no time. */
const LEAST_WITHIN = 1000;

/**
 * Checks a guard and copies it, since the caller may change its object before it is sent.
 *
 * @throws {TypeError | RangeError} naming the property and the rule, but no value: it may be confidential.
 */
function checkedGuard(value: unknown): OnlyIf {
  if (typeof value !== "object" || value === null) {
    const wayOut =
      typeof value === "function"
        ? "; Redis asks as it moves the message, and cannot call it: name a key and what it must hold"
        : "";
    const got = value === null ? "null" : `a ${typeof value}`;
    throw new TypeError(`onlyIf must be an object such as { key, is }, got ${got}${wayOut}`);
  }
  checkOptions("property of onlyIf", value, ["key", "field", "is", "isNot", "exists"]);
  const { key, field, is, isNot, exists } = value as Partial<Record<keyof OnlyIf, unknown>>;
  checkText("key", key, 1);
  if (field !== undefined) checkText("field", field, 1);
  const tests = [is, isNot, exists].filter((test) => test !== undefined);
  if (tests.length !== 1) {
    throw new TypeError(
      `onlyIf must have exactly one of is, isNot and exists, got ${tests.length === 0 ? "none" : tests.length}`,
    );
  }
  if (exists !== undefined && typeof exists !== "boolean") {
    throw new TypeError(`onlyIf.exists must be a boolean, got ${typeof exists}`);
  }
  if (is !== undefined) checkText("is", is, 0);
  if (isNot !== undefined) checkText("isNot", isNot, 0);
  return {
    key,
    ...(field !== undefined && { field }),
    ...(is !== undefined && { is }),
    ...(isNot !== undefined && { isNot }),
    ...(exists !== undefined && { exists }),
  };
}

function checkText(name: string, value: unknown, least: number): asserts value is string {
  if (typeof value !== "string") {
    const wayOut = typeof value === "number" ? "; Redis compares text, convert it with String" : "";
    const got = value === null ? "null" : typeof value;
    throw new TypeError(`onlyIf.${name} must be a string, got ${got}${wayOut}`);
  }
  if (!value.isWellFormed()) throw new TypeError(`onlyIf.${name} must be well-formed Unicode`);
  const bytes = Buffer.byteLength(value);
  if (bytes < least || bytes > MAX_BYTES) {
    throw new RangeError(
      `onlyIf.${name} must have ${least} to ${MAX_BYTES} bytes of UTF-8, got ${bytes}`,
    );
  }
}

const MAX_BYTES = 1_000;
