/** The command line is not legal, or what was read is not. Nothing was changed, except where the message tells what was. */
export class UsageError extends Error {
  static override readonly name: string = "UsageError";
}

/** Whoever was asked has said no. Nothing was changed. */
export class DeclinedError extends Error {
  static override readonly name: string = "DeclinedError";
}
