import type { Figure, Summary } from "./figure.ts";
import type { ByPeer, PeerName } from "./peers/load.ts";

/** One measurement of Delayline. */
export interface Workload {
  /** Its name on the command line. */
  readonly name: string;
  /** The name of its group on the command line. */
  readonly group?: string;
  /** Its description, in one line. */
  readonly title: string;
  /** The description of a quick round, whose numbers are smaller. */
  readonly quickTitle?: string;
  /** Runs it once, on a fresh server, and returns the same figures in every round. */
  round(round: Round): Promise<readonly Figure[]>;
}

/** How to run a workload. */
export interface Round {
  /** Smaller numbers, to see that everything works. */
  readonly isQuick: boolean;
  /** Shows the progress. */
  readonly progress: (doing: string) => void;
}

/** A workload for any of the compared libraries. */
export type Contest = Omit<Workload, "round"> & {
  round(round: ContestRound): Promise<readonly Figure[]>;
};

export interface ContestRound extends Round {
  readonly peer: PeerName;
  /** The factor by which offering may exceed its expected duration: 1, and more once it was too slow. */
  readonly patience: number;
}

/** The outcome of all rounds of a contest: figures of the same names for each library. */
export interface ContestResult {
  readonly name: string;
  readonly title: string;
  readonly figures: ByPeer<readonly Summary[]>;
}
