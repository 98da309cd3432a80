import { setTimeout as sleep } from "node:timers/promises";
import { startRedis, type RedisServer } from "delayline/testing";
import { Redis } from "ioredis";
import { CommandStats } from "./command-stats.ts";

/** Processor time of a process, in microseconds. */
export interface ProcessorTime {
  /** In its own code. */
  readonly user: number;
  /** In the system, mostly reading and writing. */
  readonly system: number;
  readonly total: number;
}

/** What a {@link BenchServer} knows of its process. */
type StartedServer = Pick<RedisServer, "url" | "port" | "version" | "stop">;

/** A server for one round, and queries about its state. */
export class BenchServer implements AsyncDisposable {
  readonly redis: Redis;
  readonly #server: StartedServer;

  private constructor(server: StartedServer) {
    this.#server = server;
    this.redis = new Redis(server.url);
  }

  /** @param more extra arguments for redis-server. */
  static async start(more: readonly string[] = []): Promise<BenchServer> {
    // Never the Redis at REDIS_URL: a benchmark resets statistics and flushes data.
    const env = { ...process.env, REDIS_URL: "" };
    return await BenchServer.of(await startRedis({ args: [...more], env }));
  }

  /** A server that has been started otherwise. */
  static async of(started: StartedServer): Promise<BenchServer> {
    const server = new BenchServer(started);
    await server.redis.config("SET", ...SLOW_LOG);
    return server;
  }

  get url(): string {
    return this.#server.url;
  }

  get port(): number {
    return this.#server.port;
  }

  get description(): string {
    return `Redis ${this.#server.version}`;
  }

  /** Resets the counts. */
  async resetStats(): Promise<void> {
    await this.redis.config("RESETSTAT");
    await this.redis.slowlog("RESET");
  }

  /** The counts since {@link resetStats}. */
  async stats(): Promise<CommandStats> {
    return new CommandStats(await this.redis.info("commandstats"));
  }

  /** The server's processor time since it was started. */
  async processorTime(): Promise<ProcessorTime> {
    const info = await this.redis.info("cpu");
    const micros = (field: string) => {
      const [, seconds] = new RegExp(`^${field}:([\\d.]+)`, "m").exec(info) ?? [];
      return Number(seconds) * 1e6;
    };
    const [user, system] = [micros("used_cpu_user"), micros("used_cpu_sys")];
    return { user, system, total: user + system };
  }

  /** The number of delayed messages, and when it was read on the server's clock (epoch ms). */
  async look(delayedKey: string): Promise<{ delayed: number; serverTime: number }> {
    const replies = await this.redis.multi().time().zcard(delayedKey).exec();
    const [time, delayed] = (replies ?? []).map(([, reply]) => reply);
    const [seconds, micros] = (time as string[]).map(Number);
    return { delayed: Number(delayed), serverTime: (seconds ?? 0) * 1000 + (micros ?? 0) / 1000 };
  }

  /** Waits until at most `count` messages are delayed. Returns when that was on the server's clock. */
  async waitUntilLeft(delayedKey: string, count: number, signal?: AbortSignal): Promise<number> {
    for (;;) {
      const { delayed, serverTime } = await this.look(delayedKey);
      if (delayed <= count) return serverTime;
      signal?.throwIfAborted();
      await sleep(2);
    }
  }

  /** The longest run of a single script since {@link resetStats}, in ms; short ones count as 0.5. */
  async longestScript(): Promise<number> {
    return Math.max(SLOW, ...(await this.scriptTimes())) / 1000;
  }

  /** A percentile of the durations of scripts since {@link resetStats}, in microseconds. NaN before Redis 7.0. */
  async scriptPercentile(percent: 50 | 99 | 99.9): Promise<number> {
    const info = await this.redis.info("latencystats");
    const line = /^latency_percentiles_usec_evalsha:(.*)$/m.exec(info)?.[1] ?? "";
    const field = line
      .trim()
      .split(",")
      .find((one) => one.startsWith(`p${percent}=`));
    return Number(field?.slice(field.indexOf("=") + 1) ?? NaN);
  }

  /** Makes {@link scriptTimes} include short runs from now on. */
  async logEverything(): Promise<void> {
    await this.redis.config("SET", "slowlog-log-slower-than", "0");
  }

  /** The durations of the slow runs of a script since {@link resetStats}, in microseconds. */
  async scriptTimes(): Promise<number[]> {
    const entries = (await this.redis.slowlog("GET", 10_000)) as SlowlogEntry[];
    const scripts = entries.filter(([, , , [command = ""]]) => /^eval/i.test(command));
    return scripts.map(([, , micros]) => micros);
  }

  /** The server's memory in bytes, once it is at rest. */
  async usedMemory(): Promise<number> {
    // The log of slow commands keeps their arguments.
    await this.redis.slowlog("RESET");
    let last = NaN;
    for (;;) {
      const info = await this.redis.info("memory");
      const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1]);
      // A growing hash table is moved step by step, and takes memory twice meanwhile.
      if (Math.abs(used - last) < used / 10_000) return used;
      last = used;
      await sleep(300);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.redis.disconnect();
    await this.#server.stop();
  }
}

/** Commands that take longer than this many microseconds are logged. */
const SLOW = 500;

/** Settings by which it logs them. */
const SLOW_LOG = ["slowlog-log-slower-than", String(SLOW), "slowlog-max-len", "10000"];

type SlowlogEntry = readonly [
  id: number,
  at: number,
  micros: number,
  command: readonly string[],
  ...client: readonly string[],
];
