import { setTimeout as sleep } from "node:timers/promises";
import { Program } from "./program.ts";
import type { Handled, MemberMethods, MemberPlan } from "./programs/member.ts";
import { Site } from "./site.ts";

/** The site of a queue, and the processes that take and move its messages. */
export interface StaffPlan extends Omit<MemberPlan, "address"> {
  /** The number of masters; one is a single server. */
  readonly masters: number;
  readonly processes: number;
  /** Clients per process, each with its own connections, as if it were a process. Defaults to 1. */
  readonly clientsPerProcess?: number;
  readonly concurrency: number;
}

/** A queue on servers of its own, the processes that take and move its messages, and one that offers. */
export class Staff implements AsyncDisposable {
  readonly site: Site;
  readonly producer: Program<MemberMethods>;
  readonly #workers: readonly Program<MemberMethods>[];

  private constructor(
    site: Site,
    programs: readonly [Program<MemberMethods>, ...Program<MemberMethods>[]],
  ) {
    this.site = site;
    const [producer, ...workers] = programs;
    this.producer = producer;
    this.#workers = workers;
  }

  /** Starts everything. Each process has then taken a message, so connections are open and the work is shared out. */
  static async start(plan: StaffPlan): Promise<Staff> {
    const { masters, processes, clientsPerProcess = 1, concurrency, ...queue } = plan;
    const starting = Array.from({ length: processes + 1 }, () =>
      Program.start<MemberMethods>("member"),
    );
    const site = await Site.start(masters);
    const programs = await Promise.all(starting);
    const staff = new Staff(site, programs as [Program<MemberMethods>]);
    await Promise.all(
      programs.map((program) => program.call("open", { ...queue, address: site.address })),
    );
    // The first client creates the partitions.
    await staff.producer.call("offerSteadily", 1, 500, 50, 200);
    await staff.#all((worker) => worker.call("consume", clientsPerProcess, concurrency));
    await staff.producer.call("offerSteadily", WARM_UP - 1, 500, 50, 200);
    await staff.handled(WARM_UP);
    // By then every process knows all others.
    await sleep(SETTLED);
    return staff;
  }

  /** Returns the handled messages, once there are `count` in all. @throws if none arrives for ten seconds. */
  async handled(count: number): Promise<Handled> {
    let seen = 0;
    let seenAt = performance.now();
    for (;;) {
      const counts = await this.#all((worker) => worker.call("handledCount"));
      const sum = counts.reduce((total, each) => total + each, 0);
      if (sum >= count) break;
      if (sum > seen) seenAt = performance.now();
      if (performance.now() > seenAt + 10_000) throw new Error(`${sum} of ${count} messages came`);
      seen = sum;
      await sleep(50);
    }
    const handled = await this.#all((worker) => worker.call("handled"));
    return {
      count: handled.reduce((sum, each) => sum + each.count, 0),
      lateness: handled.flatMap(({ lateness }) => lateness).toSorted((a, b) => a - b),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // All at once, so that the last processes do not take over the partitions of the first.
    await Promise.all([this.producer, ...this.#workers].map((program) => program.call("close")));
    await this.#all((worker) => worker[Symbol.asyncDispose]());
    await this.producer[Symbol.asyncDispose]();
    await this.site[Symbol.asyncDispose]();
  }

  #all<Result>(ask: (worker: Program<MemberMethods>) => Promise<Result>): Promise<Result[]> {
    return Promise.all(this.#workers.map(ask));
  }
}

/** Unmeasured messages that come first, so that functions are compiled and all servers know the scripts. */
const WARM_UP = 500;

const SETTLED = 3000;
