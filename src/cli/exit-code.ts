/** What the command's exit code tells. They are documented in `docs/guide/cli.md`. */
export const EXIT = {
  /** It was done. */
  done: 0,
  /** Nothing was found, or `doctor` found errors. */
  nothing: 1,
  /** The command line, or what was read from a file, is not legal. Nothing was changed. */
  usage: 2,
  /** Redis cannot be reached, or refuses. */
  redis: 3,
  /** The question was answered with no. Nothing was changed. */
  declined: 4,
  /** A defect of the command itself. */
  defect: 70,
  /** Ended by Ctrl-C. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
