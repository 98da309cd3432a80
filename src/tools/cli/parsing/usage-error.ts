/** The command line or an input file is invalid. Nothing was changed, unless the message says what was. */
export class UsageError extends Error {
  static override readonly name: string = "UsageError";
}
