import type { BenchServer, ProcessorTime } from "./bench-server.ts";
import type { CommandStats } from "./command-stats.ts";

/** The work of a server during a measurement. */
export interface Cost {
  readonly stats: CommandStats;
  /** The server's processor time. */
  readonly processorTime: ProcessorTime;
}

/** Starts to measure a server's work. */
export class Meter {
  readonly #server: BenchServer;
  readonly #before: ProcessorTime;

  private constructor(server: BenchServer, before: ProcessorTime) {
    this.#server = server;
    this.#before = before;
  }

  static async start(server: BenchServer): Promise<Meter> {
    await server.resetStats();
    return new Meter(server, await server.processorTime());
  }

  async read(): Promise<Cost> {
    const stats = await this.#server.stats();
    const { user, system, total } = await this.#server.processorTime();
    const before = this.#before;
    const processorTime = {
      user: user - before.user,
      system: system - before.system,
      total: total - before.total,
    };
    return { stats, processorTime };
  }
}
