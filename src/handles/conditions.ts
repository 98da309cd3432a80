import { checkDuration, checkOptions } from "../queue/checks.ts";
import type { Guard } from "../queue/message/guard.ts";
import type { Offering } from "../delayed/offering/offering.ts";

/** What is asked when a message is due. A message for which it does not hold is dropped. */
export interface Conditions {
  /**
   * What has to be true of a key of your own when the message is due: `{ key: "{orders}:42:status", is: "unpaid" }`.
   * Otherwise the message is dropped: its key is free, `counters` and `stats` count it, and the diagnostics channel
   * `delayline:dropped` tells of it.
   *
   * Redis asks it in the step that makes the message ready, and never again: a ready message and a retry are delivered
   * without. If Redis cannot say (a key of another type, an ACL), the message is delivered. Java's and older transfers do
   * not ask. Costs Redis some 3 us and a read when the message is due, and its bytes. Defaults to none.
   */
  readonly onlyIf?: Guard;

  /**
   * For how many milliseconds after its deadline the message may become ready; later it is dropped, as with `onlyIf`.
   * That happens if no process moved messages meanwhile, or the queue was paused. What is ready in time waits for its
   * consumer however long. Costs 15 bytes. Defaults to no limit.
   */
  readonly deliverWithin?: number;
}

/**
 * Checks the conditions of an offer.
 *
 * @throws {TypeError | RangeError} naming the option and the rule.
 */
export function checkedConditions({
  onlyIf,
  deliverWithin,
}: Conditions): Pick<Offering, "onlyIf" | "deliverWithin"> {
  if (deliverWithin !== undefined) checkDuration("deliverWithin", deliverWithin);
  return {
    ...(onlyIf !== undefined && { onlyIf: checkedGuard(onlyIf) }),
    ...(deliverWithin !== undefined && { deliverWithin: Math.ceil(deliverWithin) }),
  };
}

/**
 * Checks a guard and copies it, since the caller may change its object before it is sent.
 *
 * @throws {TypeError | RangeError} naming the property and the rule, but no value: it may be confidential.
 */
function checkedGuard(value: unknown): Guard {
  checkOptions("property of onlyIf", value, ["key", "field", "is", "isNot", "exists"]);
  const { key, field, is, isNot, exists } = value as Partial<Record<keyof Guard, unknown>>;
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
