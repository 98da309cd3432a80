import { suggest } from "./suggest.ts";
import { UsageError } from "./usage-error.ts";

/**
 * The second word of a command, such as `list` in `dead list`.
 *
 * @throws {UsageError} naming what is known, and what was probably meant.
 */
export function subWord<const Word extends string>(
  command: string,
  given: string | undefined,
  known: readonly Word[],
): Word {
  const word = known.find((one) => one === given);
  if (word !== undefined) return word;
  const near = suggest(given ?? "", known);
  const meant = near === undefined ? "" : `; did you mean ${near}?`;
  throw new UsageError(
    `${command} must be followed by ${known.join(", ")}, got ${JSON.stringify(given)}${meant}`,
  );
}
