import { suggest } from "../../inspect/suggest.ts";
import { UsageError } from "./usage-error.ts";

/**
 * Parses the second word of a command, such as `list` in `dead list`.
 *
 * @throws {UsageError} that lists the known words and suggests the closest one.
 */
export function parseSubWord<const Word extends string>(
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
