import { types } from "node:util";
import { checkDuration, checkOptions } from "../../queue/checks.ts";

/**
 * How long a message waits after a failed attempt: an array of pauses in milliseconds, the last of which repeats; a
 * `Backoff`; or a function.
 *
 * A function gets the number of the failed attempt (1, 2, ...) and the error. It returns a pause in milliseconds, or
 * `undefined` to make the message a dead letter. If it throws or returns anything else, the error is reported and the
 * default ladder decides, so a mistake in it loses no message.
 *
 * Each pause costs a delivery, so short ones cost many, until the trouble ends or `maxAttempts` is reached.
 */
export type RetryOptions =
  readonly number[] | Backoff | ((attempt: number, error: unknown) => number | undefined);

/** Pauses that grow by a factor. */
export interface Backoff {
  /** The pause after the first attempt, in milliseconds. */
  readonly initial: number;

  /**
   * The factor by which each pause is longer than the one before: 1 to 1,000,000. Defaults to 2.
   *
   * With 1 all pauses are equal, so a message that keeps failing never costs less.
   */
  readonly factor?: number;

  /**
   * The longest pause in milliseconds, `initial` or more. It is also how late a message may be handled after the
   * trouble is over. Defaults to an hour, or `initial` if that is longer.
   */
  readonly max?: number;

  /**
   * The random share of a pause, from 0 to 1: a pause of `p` lasts between `(1 - jitter) * p` and `p`.
   *
   * It keeps messages that failed together from retrying together. With 1, some retry at once. Defaults to 0.
   */
  readonly jitter?: number;
}

/** The default ladder: from a second up to an hour, each pause up to a fifth shorter. */
export const DEFAULT_RETRY = {
  initial: 1_000,
  factor: 2,
  max: 3_600_000,
  jitter: 0.2,
} as const satisfies Required<Backoff>;

/** Decides how long a message waits before its next attempt. */
export class RetryLadder {
  readonly #rule: (attempt: number, error: unknown) => unknown;

  /** @param rule its results are checked each time. */
  constructor(rule: (attempt: number, error: unknown) => unknown) {
    this.#rule = rule;
  }

  /**
   * Returns the pause in milliseconds after `attempt` (1, 2, ...) failed with `error`; undefined for a dead letter.
   *
   * Throws only if a function of the user decides: the error that the function threw, or a `TypeError` or `RangeError`
   * if it returned neither undefined nor a duration. Callers report the error, and use the default ladder instead.
   */
  pauseAfter(attempt: number, error: unknown): number | undefined {
    const pause = this.#rule(attempt, error);
    if (pause === undefined) return undefined;
    // An async function, contrary to its type. Its promise is never awaited, so a rejection would end the process.
    if (types.isPromise(pause)) pause.catch(() => {});
    checkDuration("the pause that retry returns", pause);
    return pause;
  }
}

/**
 * Checks the option `retry`, and returns its ladder, which does not follow later changes of the array or the object.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value.
 */
export function checkRetry(value: unknown = DEFAULT_RETRY): RetryLadder {
  if (typeof value === "function") return new RetryLadder(value as RetryLadder["pauseAfter"]);
  if (Array.isArray(value)) return stepLadder(value);
  if (typeof value === "object" && value !== null) return backoffLadder(value as Backoff);
  throw new TypeError(
    `retry must be an array of milliseconds, an object with initial, or a function, got ${
      value === null ? "null" : typeof value
    }`,
  );
}

function stepLadder(value: readonly unknown[]): RetryLadder {
  const pauses = Array.from(value, (pause, i) => {
    checkDuration(`retry[${i}]`, pause);
    return pause;
  });
  if (pauses.length === 0) throw new RangeError("retry must have at least one pause, got []");
  return new RetryLadder((attempt) => pauses[attempt - 1] ?? pauses.at(-1));
}

function backoffLadder(value: Backoff): RetryLadder {
  checkOptions("retry option", value, ["initial", "factor", "max", "jitter"]);
  const { initial, factor = 2, jitter = 0 } = value;
  checkDuration("retry.initial", initial);
  checkRange("retry.factor", factor, 1, MAX_FACTOR);
  const { max = Math.max(HOUR, initial) } = value;
  checkDuration("retry.max", max);
  if (max < initial) {
    throw new RangeError(`retry.max must be at least retry.initial (${initial} ms), got ${max}`);
  }
  checkRange("retry.jitter", jitter, 0, 1);
  return new RetryLadder((attempt) => {
    // The power may be Infinity, and 0 times Infinity is NaN.
    const pause = initial === 0 ? 0 : Math.min(initial * factor ** (attempt - 1), max);
    return pause * (1 - jitter * Math.random());
  });
}

function checkRange(name: string, value: unknown, least: number, most: number): void {
  if (typeof value !== "number") {
    throw new TypeError(`${name} must be a number, got ${typeof value}`);
  }
  if (!(value >= least && value <= most)) {
    throw new RangeError(`${name} must be between ${least} and ${most}, got ${value}`);
  }
}

const HOUR = 3_600_000;

/** Larger than any useful factor. Keeps out Infinity. */
const MAX_FACTOR = 1_000_000;
