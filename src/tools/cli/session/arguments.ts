import { durationIn, suggest } from "../../../inside.ts";
import type { ExitCode } from "./exit.ts";

/** The command line or an input file is invalid. Nothing was changed, unless the message says what was. */
export class UsageError extends Error {
  static override readonly name: string = "UsageError";
}

/** This machine refuses something that the command needs: a port, or room on a disk. */
export class MachineError extends Error {
  static override readonly name: string = "MachineError";
  readonly exit: ExitCode;

  constructor(message: string, exit: ExitCode, options?: ErrorOptions) {
    super(message, options);
    this.exit = exit;
  }
}

/** One word of the command line. */
const COMPACT = /^(?:\d+(?:\.\d+)?(?:ms|[wdhms]))+$/;

/**
 * Parses a duration such as `15m`, `1h30m` or `500ms` into milliseconds.
 *
 * @throws {UsageError} that names the option, if the text is not a duration.
 */
export function parseDuration(option: string, text: string): number {
  const duration = COMPACT.test(text) ? durationIn(text) : undefined;
  if (duration !== undefined) return duration;
  throw new UsageError(
    `${option} must be a duration such as 500ms, 30s, 15m, 1h30m, 7d or 2w, got ${JSON.stringify(text)}`,
  );
}

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

/**
 * Parses one of the values that an option takes.
 *
 * @throws {UsageError} that names the option, its values and the one that was probably meant.
 */
export function parseChoice<const Choice extends string>(
  option: string,
  text: string,
  choices: readonly Choice[],
): Choice {
  const choice = choices.find((one) => one === text);
  if (choice !== undefined) return choice;
  const near = suggest(text, choices);
  const meant = near === undefined ? "" : `; did you mean ${near}?`;
  const list = `${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`;
  throw new UsageError(`${option} must be ${list}, got ${JSON.stringify(text)}${meant}`);
}

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
