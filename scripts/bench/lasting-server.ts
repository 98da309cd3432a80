import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { findServer, type ServerBinary } from "../../src/adapters/testing/find-server.ts";
import { freePort, ServerProcess } from "../../src/adapters/testing/server-process.ts";

/** A server that can be stopped, and started again with its data, however long it takes to load them. */
export class LastingServer implements AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly #binary: ServerBinary;
  readonly #directory: string;
  #process: ServerProcess | undefined;

  private constructor(binary: ServerBinary, port: number, directory: string) {
    this.url = `redis://127.0.0.1:${port}`;
    this.port = port;
    this.#binary = binary;
    this.#directory = directory;
  }

  get version(): string {
    return this.#binary.version;
  }

  static async start(): Promise<LastingServer> {
    const directory = await mkdtemp(join(tmpdir(), "delayline-bench-"));
    const server = new LastingServer(await findServer(process.env), await freePort(), directory);
    await server.restart();
    return server;
  }

  /** Starts it on its port with its data, and returns once it has loaded them. */
  async restart(...args: readonly string[]): Promise<void> {
    await this.stop();
    const settings = ["--port", String(this.port), "--bind", "127.0.0.1", "--save", ""];
    const all = [...settings, "--dir", this.#directory, ...args];
    this.#process = await ServerProcess.spawn(this.#binary, () => all);
    const redis = new Redis(this.url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
    redis.on("error", () => {});
    while (!(await isReady(redis))) await sleep(20);
    redis.disconnect();
  }

  async stop(): Promise<void> {
    await this.#process?.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Redis replies with LOADING, until it has read everything. */
async function isReady(redis: Redis): Promise<boolean> {
  try {
    return (await redis.ping()) === "PONG";
  } catch {
    return false;
  }
}
