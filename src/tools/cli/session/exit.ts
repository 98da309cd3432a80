/** The command's exit codes. `docs/guide/cli.md` documents them. */
export const EXIT = {
  /** Success. */
  done: 0,
  /** Nothing was found, `doctor` found errors, `demo` lost an order, or the file of an import was incomplete. */
  nothing: 1,
  /** The command line or an input file is invalid. Nothing was changed, except by an import: its message says what. */
  usage: 2,
  /** Redis is unreachable or refuses a command. Of several queues: for at least one. */
  redis: 3,
  /** The user answered no. Nothing was changed. */
  declined: 4,
  /** Some of the given ids or keys were not found. The others were changed. */
  partial: 5,
  /** This machine refuses the address of the dashboard: its port is in use, for example. */
  address: 69,
  /** A defect of the command itself. */
  defect: 70,
  /** A file or stdout cannot be written: the disk is full, for example. */
  output: 74,
  /** Ended by Ctrl-C. */
  interrupted: 130,
  /** Ended by SIGTERM. */
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
