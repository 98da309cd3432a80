import { createInterface } from "node:readline/promises";
import { UsageError } from "../parsing/usage-error.ts";
import type { Session } from "./session.ts";

/** The user answered no. Nothing was changed. */
export class DeclinedError extends Error {
  static override readonly name: string = "DeclinedError";
}

/**
 * Asks for confirmation of a change such as `pause queue "orders"`; returns whether to make it. With `--dry-run` it
 * prints the change and returns false.
 *
 * @throws {DeclinedError} if the user answers no.
 * @throws {UsageError} if there is neither a terminal nor `--yes`.
 */
export async function confirm(
  { io, output }: Session,
  change: string,
  { yes = false, "dry-run": isDry = false }: { yes?: boolean; "dry-run"?: boolean },
): Promise<boolean> {
  if (isDry) {
    output.say(`Would ${change}. Nothing was changed.`);
    return false;
  }
  if (yes) return true;
  const { stdin, stderr, signal } = io;
  if (stdin.isTTY !== true) {
    throw new UsageError(`there is no terminal to ask on: give --yes to ${change}`);
  }
  // `terminal: true` would put the terminal into raw mode, in which Ctrl-C no longer reaches the process.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const asked = lines.question(`Really ${change}? [y/N] `, { signal });
    // After Ctrl-D the question never settles.
    const closed = new Promise<string>((resolve) => {
      // The input may end with the answer, without a line break. Let the answer settle first.
      lines.once("close", () => setImmediate(resolve, "\n"));
    });
    const answer = await Promise.race([asked.catch(() => closed), closed]);
    signal.throwIfAborted();
    if (answer === "\n") stderr.write(answer);
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new DeclinedError("Nothing was changed.");
    return true;
  } finally {
    lines.close();
  }
}
