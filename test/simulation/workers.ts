import { Child } from "../../scripts/child/child.ts";
import type { Reduction } from "./machine/machine.ts";
import type { Outcome } from "./machine/simulate.ts";

/** A run that is to be done. */
export interface Job {
  readonly world: string;
  readonly seed: number;
  readonly reduction?: Reduction;
}

/** Processes that simulate, each with its own Redis. */
export class Workers {
  readonly #children: readonly Child<Outcome>[];

  constructor(count = 2) {
    const program = new URL("worker.ts", import.meta.url);
    this.#children = Array.from({ length: count }, () => new Child<Outcome>(program));
  }

  /** Does the jobs, and reports each outcome when it is there. `onOutcome` returns whether to go on. */
  async run(jobs: Iterable<Job>, onOutcome: (outcome: Outcome) => boolean): Promise<void> {
    const left = jobs[Symbol.iterator]();
    let isStopped = false;
    await Promise.all(
      this.#children.map(async (child) => {
        for (let job = left.next(); !job.done && !isStopped; job = left.next()) {
          await child.send({ ...job.value });
          isStopped ||= !onOutcome(await child.next(() => true, PATIENCE));
        }
      }),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.release()));
  }
}

/** Does the jobs in processes of their own, and returns what came of them. */
export async function simulate(jobs: Iterable<Job>): Promise<readonly Outcome[]> {
  const workers = new Workers();
  const outcomes: Outcome[] = [];
  try {
    await workers.run(jobs, (outcome) => {
      outcomes.push(outcome);
      return true;
    });
  } finally {
    await workers.close();
  }
  return outcomes;
}

/** Real milliseconds for one run. One that ends at its limit of events takes minutes on a busy machine. */
const PATIENCE = 600_000;
