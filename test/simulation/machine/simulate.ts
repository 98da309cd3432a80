import type { World } from "../sim.ts";
import { Machine, type Reduction } from "./machine.ts";
import { SimServer } from "./server.ts";
import { Trace } from "./trace.ts";

/** What came of a run. */
export interface Outcome {
  readonly world: string;
  readonly seed: number;
  /** What is wrong. */
  readonly violations: readonly string[];
  /** The hash of the trace. */
  readonly hash: string;
  /** How many events were released. */
  readonly events: number;
  /** Virtual milliseconds. */
  readonly elapsed: number;
  /** How many faults were planned, and operations asked for. */
  readonly faultCount: number;
  readonly operationCount: number;
  /** The last lines of the trace. */
  readonly tail: readonly string[];
}

/** Servers for runs, one run at a time. It replaces what this process takes from Node; see `globals.ts`. */
export class Simulator {
  readonly #servers: SimServer[] = [];

  /** Runs a world with a seed. `print` receives the lines of the trace. */
  async run(
    world: World,
    seed: number,
    reduction?: Reduction,
    print?: (line: string) => void,
  ): Promise<Outcome> {
    const { servers: count = 1 } = world;
    while (this.#servers.length < count) {
      this.#servers.push(await SimServer.start(this.#servers.length));
    }
    const trace = new Trace(print);
    const machine = new Machine(seed, world, this.#servers.slice(0, count), trace, reduction);
    const violations = await machine.run();
    return {
      world: world.name,
      seed,
      violations,
      tail: trace.tail,
      hash: trace.digest(),
      events: machine.step,
      elapsed: machine.elapsed,
      faultCount: machine.faults.planCount,
      operationCount: machine.wantCount,
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
  }
}
