import { Delayline } from "../../../src/index.ts";
import type { ProcessOptions } from "../sim.ts";
import { connectorTo } from "./connection.ts";
import { owners, type Owner } from "./owner.ts";
import type { Stage, StagedProcess } from "./stage.ts";

/** A simulated process. */
export class Process implements StagedProcess {
  readonly name: string;
  readonly owner: Owner;
  readonly line: Delayline;
  readonly mayCrash: boolean;
  readonly crashed: Promise<void>;
  readonly #stage: Stage;
  #onCrash: () => void = () => {};

  constructor(stage: Stage, name: string, number: number, options: ProcessOptions) {
    const { mayCrash = true, redis = {}, ...rest } = options;
    this.#stage = stage;
    this.name = name;
    this.mayCrash = mayCrash;
    this.owner = { name, pid: 100 + number, isAlive: true, stalledUntil: 0 };
    this.crashed = new Promise((resolve) => (this.#onCrash = resolve));
    const addresses = stage.servers.map((server) => ({
      ...redis,
      Connector: connectorTo(() => stage.connect(this.owner, server)),
    }));
    this.line = this.run(() => {
      const line = new Delayline({
        // A world may let messages expire sooner than makes sense on real links.
        anyTime: true,
        ...rest,
        redis: addresses.length === 1 ? addresses[0] : addresses,
      } as ConstructorParameters<typeof Delayline>[0]);
      line.on("error", (error) => {
        stage.tell(`${name} reports ${error.code}: ${error.message}`);
      });
      return line;
    });
  }

  get isAlive(): boolean {
    return this.owner.isAlive;
  }

  run<Result>(act: () => Result): Result {
    return owners.run(this.owner, act);
  }

  crash({ vanishes = false } = {}): void {
    if (!this.owner.isAlive) return;
    this.#stage.record(
      { fault: "crash", process: this.name, ...(vanishes && { vanishes }) },
      undefined,
    );
    this.owner.isAlive = false;
    this.#stage.clock.drop(this.owner);
    for (const connection of this.#stage.connections) {
      if (connection.owner !== this.owner) continue;
      connection.received.length = 0;
      if (connection.isConnecting) connection.isLost = true;
      else if (vanishes) connection.isSilent = true;
      else connection.end();
    }
    this.#onCrash();
  }

  stall(duration: number): void {
    this.owner.stalledUntil = Math.max(this.owner.stalledUntil, this.#stage.elapsed + duration);
  }
}
