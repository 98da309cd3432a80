import type { Numbers } from "../partitions/parts/numbers.ts";
import { callOf, type Call, type CallOptions } from "../queue/call.ts";
import { checkInstant, checkOptions, checkSignal, checkWhole } from "../queue/checks.ts";
import type { InstantLike } from "../queue/instant.ts";

/** Options of `forecast`. */
export interface ForecastOptions extends CallOptions {
  /** When the first span begins: a date, epoch milliseconds or a local time. Defaults to now on the server's clock. */
  readonly from?: InstantLike;
  /** How long each span is, in milliseconds: a whole number of at least 1. */
  readonly step: number;
  /** How many spans: 1 to 1,000. */
  readonly count: number;
}

/** How many messages fall due when. */
export interface QueueForecast {
  /** When the first span begins (epoch ms on the server's clock). */
  readonly from: number;
  /** How long each span is (ms). */
  readonly step: number;
  /** How many messages and retries fall due in each span. */
  readonly counts: readonly number[];
}

/**
 * Checks the options of a forecast, or of another call with spans, which has some `more`.
 *
 * @throws {RangeError | TypeError} if an option is not legal.
 */
export function checkForecast(
  options: ForecastOptions,
  what = "forecast",
  more: readonly string[] = [],
): void {
  checkOptions(`${what} option`, options, [...more, "from", "step", "count", "signal"]);
  checkWhole("step", options.step, 1, Number.MAX_SAFE_INTEGER);
  checkWhole("count", options.count, 1, 1000);
  checkSignal(options.signal);
}

/** When the first span begins (epoch ms), given the server's time. */
export function beginOf(from: InstantLike | undefined, now: number): number {
  return from === undefined ? now : checkInstant("from", from, { delay: "add Date.now()" });
}

/** Returns how many messages and retries fall due in each span; the options are checked. */
export async function forecastOf(
  numbers: Numbers,
  { step, count, ...options }: ForecastOptions,
): Promise<QueueForecast> {
  const call = callOf(options);
  const now = options.from === undefined ? await timeOf(numbers, call) : NaN;
  const from = beginOf(options.from, now);
  return { from, step, counts: await numbers.forecast({ from, step, count }, call) };
}

/** The server's time in whole milliseconds (epoch ms). */
export async function timeOf(numbers: Numbers, call?: Call): Promise<number> {
  return Math.floor((await numbers.stats(call)).serverTime);
}
