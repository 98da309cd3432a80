/** What the command's exit code tells. They are documented in `docs/guide/cli.md`. */
export const EXIT = {
  /** It was done. */
  done: 0,
  /** Nothing was found, `doctor` found errors, or the file of an import was not whole. */
  nothing: 1,
  /** The command line, or what was read from a file, is not legal. Nothing was changed, except by an import: it tells what was put in. */
  usage: 2,
  /** Redis cannot be reached, or refuses; of several queues: one at least. */
  redis: 3,
  /** The question was answered with no. Nothing was changed. */
  declined: 4,
  /** A defect of the command itself. */
  defect: 70,
  /** Ended by Ctrl-C. */
  interrupted: 130,
  /** Ended by SIGTERM. */
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
