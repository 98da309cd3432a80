import { UsageError } from "./usage-error.ts";

/**
 * Parses a whole number between `least` and `most`.
 *
 * @throws {UsageError} that names the option, the rule and the value.
 */
export function parseCount(option: string, text: string, least: number, most: number): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= least && count <= most) return count;
  throw new UsageError(
    `${option} must be a whole number between ${least} and ${most}, got ${JSON.stringify(text)}`,
  );
}
