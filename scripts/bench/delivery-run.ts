import { setTimeout as sleep } from "node:timers/promises";
import { BenchServer } from "./bench-server.ts";
import type { CommandStats } from "./command-stats.ts";
import { joinDeliveries, type Deliveries } from "./deliveries.ts";
import { Program } from "./program.ts";
import type { ProducerMethods } from "./programs/producer.ts";
import type { WorkerMethods } from "./programs/worker.ts";
import type { Round } from "./workload.ts";

/** A producer process, worker processes, and what the one offers to the others. */
export interface DeliveryPlan {
  readonly workerProcesses: number;
  /** Each client has connections and a transfer task of its own. Defaults to 1. */
  readonly clientsPerProcess?: number;
  /** How many handlers each client may run at once. */
  readonly concurrency: number;
  readonly count: number;
  readonly minDelay: number;
  readonly maxDelay: number;
  /** How fast to offer; without it, as fast as 100 offers in flight can be. */
  readonly perSecond?: number;
}

/** What was seen between the first offer and the last message taken. */
export interface DeliveryResult extends Deliveries {
  readonly stats: CommandStats;
  /** Offers per second. */
  readonly offerRate: number;
}

/**
 * Starts everything, warms it up with some messages that do not count, and carries out the plan.
 */
export async function deliver(plan: DeliveryPlan, { progress }: Round): Promise<DeliveryResult> {
  const { count, minDelay, maxDelay, perSecond } = plan;
  await using server = await BenchServer.start();
  await using producer = await Program.start<ProducerMethods>("producer");
  await using crew = new Crew(
    await Promise.all(
      Array.from({ length: plan.workerProcesses }, () => Program.start<WorkerMethods>("worker")),
    ),
  );
  await producer.call("open", server.url, QUEUE);
  await crew.open(server.url, plan);

  progress("warming up");
  const warmUp = { first: 0, count: Math.ceil(count / 20), minDelay: 0, maxDelay: 500 };
  await producer.call("offerBusily", warmUp, 10);
  await crew.taken(warmUp.count);
  await crew.reset();

  progress(`offering ${count} messages`);
  await server.resetStats();
  const first = warmUp.count;
  const offers = { first, count, minDelay, maxDelay };
  const offered = await (perSecond === undefined
    ? producer.call("offerBusily", offers, 100)
    : producer.call("offerSteadily", offers, perSecond));
  progress("waiting for the last message");
  const taken = await crew.taken(count, maxDelay);
  const stats = await server.stats();
  const deliveries = joinDeliveries(offered, first, taken);
  await Promise.all([crew.close(), producer.call("close")]);
  return { ...deliveries, stats, offerRate: (count / offered.duration) * 1000 };
}

const QUEUE = "orders";

/** The worker processes together. */
class Crew implements AsyncDisposable {
  readonly #workers: readonly Program<WorkerMethods>[];

  constructor(workers: readonly Program<WorkerMethods>[]) {
    this.#workers = workers;
  }

  async open(url: string, { clientsPerProcess = 1, concurrency }: DeliveryPlan): Promise<void> {
    await this.#all((worker) => worker.call("open", url, QUEUE, clientsPerProcess, concurrency));
  }

  /** What they have taken, when that is `count` in all, or nothing can be expected any more. */
  async taken(count: number, within = 0) {
    // Asked as seldom as will do, since each question takes the worker's time.
    await sleep(within);
    const lostAt = performance.now() + 10_000;
    while (performance.now() < lostAt) {
      const counts = await this.#all((worker) => worker.call("count"));
      if (counts.reduce((sum, each) => sum + each, 0) >= count) break;
      await sleep(100);
    }
    // Should anything come twice, it has come by then.
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
