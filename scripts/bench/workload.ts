import type { Figure } from "./figure.ts";

/** Something to measure. */
export interface Workload {
  /** What it is called on the command line. */
  readonly name: string;
  /** What it does, in one line. */
  readonly title: string;
  /** Does it once, on a fresh server, and answers what it saw: the same figures in every round. */
  round(round: Round): Promise<readonly Figure[]>;
}

/** How a workload is to be run. */
export interface Round {
  /** Smaller numbers, to see that everything works. */
  readonly isQuick: boolean;
  /** Tells the person who waits what is going on. */
  readonly progress: (doing: string) => void;
}
