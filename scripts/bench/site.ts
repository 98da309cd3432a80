import { setTimeout as sleep } from "node:timers/promises";
import { BenchServer } from "./bench-server.ts";
import { CommandStats } from "./command-stats.ts";

/** The address of a queue, in a form that can be sent to another process. */
export interface Address {
  readonly ports: readonly number[];
  readonly isCluster: boolean;
}

/** The servers of a queue: a single one, or the masters of a Redis Cluster. */
export class Site implements AsyncDisposable {
  readonly servers: readonly BenchServer[];
  readonly address: Address;

  private constructor(servers: readonly BenchServer[], isCluster: boolean) {
    this.servers = servers;
    this.address = { ports: servers.map(({ port }) => port), isCluster };
  }

  /** Starts one server, or a Cluster of several masters with equally many slots. */
  static async start(masterCount = 1): Promise<Site> {
    if (masterCount === 1) return new Site([await BenchServer.start()], false);
    const args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"];
    const starting = Array.from({ length: masterCount }, () => BenchServer.start(args));
    const site = new Site(await Promise.all(starting), true);
    await site.#join();
    return site;
  }

  /** Resets the counts of all servers. */
  async resetStats(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.resetStats()));
  }

  /** The counts of all servers together since {@link resetStats}. */
  async stats(): Promise<CommandStats> {
    return new CommandStats(...(await this.#infos()));
  }

  /** The counts of each server. */
  async statsOfEach(): Promise<CommandStats[]> {
    return (await this.#infos()).map((info) => new CommandStats(info));
  }

  /** The processor time of each server since it was started, in microseconds. */
  async processorTimes(): Promise<number[]> {
    const times = await Promise.all(this.servers.map((server) => server.processorTime()));
    return times.map(({ total }) => total);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server[Symbol.asyncDispose]()));
  }

  #infos(): Promise<string[]> {
    return Promise.all(this.servers.map(({ redis }) => redis.info("commandstats")));
  }

  async #join(): Promise<void> {
    const { length } = this.servers;
    for (const [i, { redis }] of this.servers.entries()) {
      const from = Math.ceil((SLOT_COUNT * i) / length);
      const to = Math.ceil((SLOT_COUNT * (i + 1)) / length);
      await redis.cluster("ADDSLOTS", ...Array.from({ length: to - from }, (_, k) => from + k));
      // The bus port is the default, the server's port plus 10000: our ports are low enough for that.
      for (const { port } of this.servers) await redis.cluster("MEET", "127.0.0.1", port);
    }
    const all = [`cluster_known_nodes:${length}`, "cluster_state:ok", "cluster_slots_ok:16384"];
    const giveUpAt = performance.now() + PATIENCE;
    for (const { redis } of this.servers) {
      for (;;) {
        const info = await redis.cluster("INFO");
        if (all.every((line) => info.includes(line))) break;
        if (performance.now() > giveUpAt) throw new Error("the servers became no Cluster");
        await sleep(50);
      }
    }
  }
}

const SLOT_COUNT = 16_384;

/** Milliseconds that servers may take to form a Cluster. */
const PATIENCE = 30_000;
