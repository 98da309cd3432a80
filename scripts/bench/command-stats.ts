/**
 * How often each command has run on a server, and for how long, from `INFO commandstats`. It counts the commands that
 * scripts run as well as the script's EVALSHA.
 */
export class CommandStats {
  readonly #commands: ReadonlyMap<string, { readonly calls: number; readonly usec: number }>;

  /** @param infos the servers' replies to `INFO commandstats`, which are added up. */
  constructor(...infos: readonly string[]) {
    const commands = new Map<string, { calls: number; usec: number }>();
    for (const info of infos) {
      for (const line of info.matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)) {
        const [, name = "", calls, usec] = line;
        const sum = commands.get(name) ?? { calls: 0, usec: 0 };
        commands.set(name, { calls: sum.calls + Number(calls), usec: sum.usec + Number(usec) });
      }
    }
    this.#commands = commands;
  }

  /** The number of commands, without the benchmark's own queries. */
  get total(): number {
    return this.#counted.reduce((sum, [, { calls }]) => sum + calls, 0);
  }

  calls(command: string): number {
    return this.#commands.get(command)?.calls ?? 0;
  }

  /** The time of all scripts, in microseconds. */
  get scriptTime(): number {
    return this.#usec("evalsha") + this.#usec("eval");
  }

  /**
   * How often the transfer script has run. Redis counts all scripts together. Among the library's scripts, only this
   * one and the offers read the clock, once each, and only the offers also ask for a rank, once.
   */
  get transferCount(): number {
    const count = this.calls("time") - this.calls("zrank");
    if (count <= 0) throw new Error("no transfer was seen: does it still read the clock?");
    return count;
  }

  /** How often each command was called per message. */
  perMessage(messages: number): Record<string, number> {
    return Object.fromEntries(this.#counted.map(([name, { calls }]) => [name, calls / messages]));
  }

  #usec(command: string): number {
    return this.#commands.get(command)?.usec ?? 0;
  }

  get #counted() {
    return [...this.#commands].filter(([name]) => !/^(info|config|slowlog)\b/.test(name));
  }
}
