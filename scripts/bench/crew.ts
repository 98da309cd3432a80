import { setTimeout as sleep } from "node:timers/promises";
import type { Taken } from "./deliveries.ts";
import type { PeerName } from "./peers/load.ts";
import { Program } from "./program.ts";
import type { WorkerMethods } from "./programs/worker.ts";

/** The workers that take messages. */
export interface CrewPlan {
  readonly workerProcesses: number;
  /** Clients per process, each with its own connections, as if it were a process. Defaults to 1. */
  readonly clientsPerProcess?: number;
  /** How many messages each client may hold at once. */
  readonly concurrency: number;
}

/** Several worker processes. */
export class Crew implements AsyncDisposable {
  readonly #plan: CrewPlan;
  readonly #workers: readonly Program<WorkerMethods>[];

  private constructor(plan: CrewPlan, workers: readonly Program<WorkerMethods>[]) {
    this.#plan = plan;
    this.#workers = workers;
  }

  /** Starts the processes, which do not take messages yet. */
  static async start(plan: CrewPlan): Promise<Crew> {
    const workers = Array.from({ length: plan.workerProcesses }, () =>
      Program.start<WorkerMethods>("worker"),
    );
    return new Crew(plan, await Promise.all(workers));
  }

  /** Begins to take messages. */
  async open(peer: PeerName, url: string): Promise<void> {
    const { clientsPerProcess = 1, concurrency } = this.#plan;
    await this.#all((worker) => worker.call("open", peer, url, clientsPerProcess, concurrency));
  }

  /**
   * Returns the messages that the workers took, once there are `count` in all, or when none has arrived for ten
   * seconds.
   *
   * @param within milliseconds before the workers are first asked: each question takes their time.
   */
  async taken(count: number, within = 0): Promise<Taken[]> {
    await sleep(within);
    let seen = 0;
    let seenAt = performance.now();
    while (performance.now() < seenAt + 10_000) {
      const counts = await this.#all((worker) => worker.call("count"));
      const sum = counts.reduce((total, each) => total + each, 0);
      if (sum >= count) break;
      if (sum > seen) seenAt = performance.now();
      seen = sum;
      await sleep(100);
    }
    // A duplicate would have arrived by then.
    await sleep(200);
    return await this.#all((worker) => worker.call("taken"));
  }

  async reset(): Promise<void> {
    await this.#all((worker) => worker.call("reset"));
  }

  async close(): Promise<void> {
    await this.#all((worker) => worker.call("close"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#all((worker) => worker[Symbol.asyncDispose]());
  }

  #all<Result>(ask: (worker: Program<WorkerMethods>) => Promise<Result>): Promise<Result[]> {
    return Promise.all(this.#workers.map(ask));
  }
}
