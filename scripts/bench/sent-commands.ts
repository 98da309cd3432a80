import type { Redis } from "ioredis";
import type { Site } from "./site.ts";

/**
 * Counts the commands that clients send, with `MONITOR`. Unlike `INFO commandstats` it tells them from the commands that
 * scripts run. It costs the servers time, so durations are measured without it.
 */
export class SentCommands {
  readonly #site: Site;
  readonly #monitors: readonly Redis[];
  readonly #counts = new Map<string, number>();
  /** How many commands scripts have run. */
  inScripts = 0;

  private constructor(site: Site, monitors: readonly Redis[]) {
    this.#site = site;
    this.#monitors = monitors;
    for (const monitor of monitors) {
      // ioredis may mistake a line that arrives together with others for a reply. That command is not counted.
      monitor.on("error", () => {});
      monitor.on("monitor", (_time, [command = ""]: string[], source: string) => {
        if (source === "lua") this.inScripts += 1;
        else this.#add(command.toLowerCase());
      });
    }
  }

  /** Starts to count. */
  static async start(site: Site): Promise<SentCommands> {
    const monitors = await Promise.all(site.servers.map(({ redis }) => redis.monitor()));
    await site.resetStats();
    return new SentCommands(site, monitors);
  }

  /** Stops counting. Returns how often each command was sent. */
  async end(): Promise<ReadonlyMap<string, number>> {
    const stats = await this.#site.stats();
    // The last lines are still on their way.
    await Promise.all(this.#site.servers.map(({ redis }) => redis.ping()));
    for (const monitor of this.#monitors) monitor.disconnect();
    const counts = new Map(this.#counts);
    // MONITOR shows no administrative commands.
    const unblocks = stats.calls("client|unblock");
    if (unblocks > 0) counts.set("client unblock", unblocks);
    // The benchmark itself sends these.
    for (const command of ["info", "config", "slowlog"]) counts.delete(command);
    return counts;
  }

  #add(command: string): void {
    this.#counts.set(command, (this.#counts.get(command) ?? 0) + 1);
  }
}

/** Commands that wait for messages. */
const BLOCKS: ReadonlySet<string> = new Set(["blpop", "xreadgroup"]);
const SCRIPTS: ReadonlySet<string> = new Set(["evalsha", "eval"]);

/** The numbers of scripts, blocking calls and others. */
export function kindsOf(counts: ReadonlyMap<string, number>): {
  readonly scripts: number;
  readonly blocks: number;
  readonly others: number;
} {
  const sum = { scripts: 0, blocks: 0, others: 0 };
  for (const [command, count] of counts) {
    if (SCRIPTS.has(command)) sum.scripts += count;
    else if (BLOCKS.has(command)) sum.blocks += count;
    else sum.others += count;
  }
  return sum;
}
