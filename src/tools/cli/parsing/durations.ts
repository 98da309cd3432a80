import { UsageError } from "./usage-error.ts";

/** The units of a duration and their lengths in milliseconds, longest first. */
export const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|[dhms]))+$/;

/**
 * Parses a duration such as `15m`, `1h30m` or `500ms` into milliseconds.
 *
 * @throws {UsageError} that names the option, if the text is not a duration.
 */
export function parseDuration(option: string, text: string): number {
  if (!DURATION.test(text)) {
    throw new UsageError(
      `${option} must be a duration such as 500ms, 30s, 15m, 1h30m or 7d, got ${JSON.stringify(text)}`,
    );
  }
  let sum = 0;
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g)) {
    sum += Number(count) * (UNITS.find(([name]) => name === unit)?.[1] ?? 0);
  }
  return sum;
}
