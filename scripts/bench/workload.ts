import type { Figure, Summary } from "./figure.ts";
import type { ByPeer, PeerName } from "./peers/load.ts";

/** Something to measure. */
export interface Workload {
  /** What it is called on the command line. */
  readonly name: string;
  /** What it is called together with others on the command line. */
  readonly group?: string;
  /** What it does, in one line. */
  readonly title: string;
  /** The same for a quick round, where the numbers are smaller. */
  readonly quickTitle?: string;
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

/** A workload for any of the libraries that are compared. */
export type Contest = Omit<Workload, "round"> & {
  round(round: ContestRound): Promise<readonly Figure[]>;
};

export interface ContestRound extends Round {
  readonly peer: PeerName;
  /** How much longer than expected offering may take: 1, and more once it has been too slow. */
  readonly patience: number;
}

/** What all rounds of a contest came to: the figures of each library, all with the same names. */
export interface ContestResult {
  readonly name: string;
  readonly title: string;
  readonly figures: ByPeer<readonly Summary[]>;
}
