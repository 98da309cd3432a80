import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { startRedis } from "../../src/adapters/testing/index.ts";
import type { RedisServer } from "../../src/adapters/testing/index.ts";

export interface OwnServerOptions {
  /** Keeps every write in an append-only file, so that it survives `kill`. Defaults to false. */
  readonly appendOnly?: boolean;
  /** More arguments for redis-server. */
  readonly args?: readonly string[];
}

/** Arguments of a master that syncs a replica at once, and does not wait five seconds for others to join. */
export const SYNC_AT_ONCE: readonly string[] = ["--repl-diskless-sync-delay", "0"];

/** Starts a Redis for this test alone, which is stopped when the test has finished. */
export async function startOwnServer(options?: OwnServerOptions): Promise<OwnServer> {
  const server = await OwnServer.start(options);
  onTestFinished(() => server.stop());
  return server;
}

/** A Redis that a test may break. It is always a process of its own, even if there is a `REDIS_URL`. */
export class OwnServer {
  readonly #directory: string;
  readonly #args: readonly string[];
  #server: RedisServer;

  private constructor(server: RedisServer, directory: string, args: readonly string[]) {
    this.#server = server;
    this.#directory = directory;
    this.#args = args;
  }

  static async start(options: OwnServerOptions = {}): Promise<OwnServer> {
    const { appendOnly = false, args = [] } = options;
    const persistence = appendOnly ? ["--appendonly", "yes", "--appendfsync", "always"] : [];
    const allArgs = [...persistence, ...args];
    const directory = await mkdtemp(join(tmpdir(), "delayline-own-server-"));
    const server = await startRedis({ args: allArgs, directory, env: withoutRedisUrl() });
    return new OwnServer(server, directory, allArgs);
  }

  get url(): string {
    return this.#server.url;
  }

  get port(): number {
    return this.#server.port;
  }

  get pid(): number {
    const { pid } = this.#server;
    if (pid === undefined) throw new Error("the server of this test has no process id");
    return pid;
  }

  /** Where it keeps its data. */
  get directory(): string {
    return this.#directory;
  }

  /** Kills it (SIGKILL), and waits until it is gone. */
  async kill(): Promise<void> {
    process.kill(this.pid, "SIGKILL");
    await this.#server.stop();
  }

  /** Shuts it down (SIGTERM), and waits until it is gone. */
  async shutDown(): Promise<void> {
    await this.#server.stop();
  }

  /** Starts it again on the same port, with the same arguments and data, and waits until it replies. */
  async restart(): Promise<void> {
    await this.#server.stop();
    const { port } = this;
    const options = { args: this.#args, directory: this.#directory, env: withoutRedisUrl(), port };
    this.#server = await startRedis(options);
  }

  /** Freezes it (SIGSTOP): it keeps and accepts connections, but does not reply. */
  pause(): void {
    process.kill(this.pid, "SIGSTOP");
  }

  /** Ends {@link OwnServer.pause}. It then replies to what has piled up. */
  resume(): void {
    process.kill(this.pid, "SIGCONT");
  }

  /** Ends it for good and removes its data. May be called twice, and in any state. */
  async stop(): Promise<void> {
    try {
      this.resume();
    } catch {
      // It is gone.
    }
    await this.#server.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function withoutRedisUrl(): NodeJS.ProcessEnv {
  return { ...process.env, REDIS_URL: "" };
}
