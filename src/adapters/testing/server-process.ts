import { spawn, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServerBinary } from "./find-server.ts";
import { networkTime } from "../../time/runtime.ts";

/*
 * A server must not outlive the process that started it, however that process ends: by returning, by process.exit, by a
 * signal or by SIGKILL. Exit hooks miss the last two, and signal handlers would change the behaviour of the host
 * program. So a shell runs beside each server and waits for the end of its standard input. Only this process holds the
 * other end of that pipe, and the kernel closes it when the process ends for any reason. The shell then kills the
 * server and removes its directory.
 */
const WATCHDOG = 'read -r _; kill -9 "$1"; rm -rf -- "$2"';

/** How long a server may take to stop before it is killed, in milliseconds. */
const STOP_TIMEOUT = 2_000;

/** How many lines of a server's log an error quotes. */
const LOG_LINES = 20;

/**
 * A running redis-server that belongs to this process.
 *
 * It has its own temporary directory, which is removed when the server ends. It does not keep the Node.js process
 * alive, and does not survive it.
 */
export class ServerProcess {
  /** Settles when the process has ended and its temporary directory is gone. */
  readonly exited: Promise<void>;
  readonly #child: ChildProcess;
  readonly #directory: string;
  #running = true;
  #log = "";

  private constructor(child: ChildProcess, watchdog: ChildProcess, directory: string) {
    this.#child = child;
    this.#directory = directory;
    this.exited = this.#end(watchdog);
    // `stop` reports a directory that cannot be removed.
    this.exited.catch(() => {});
  }

  /**
   * Starts a server with these arguments.
   *
   * @param args returns the arguments, given the server's temporary directory.
   */
  static async spawn(
    binary: ServerBinary,
    args: (directory: string) => string[],
  ): Promise<ServerProcess> {
    const directory = mkdtempSync(join(tmpdir(), "delayline-redis-"));
    // A file, not a pipe: if this process is busy, a full pipe would stop the server.
    const log = openSync(logFile(directory), "a");
    // Detached from the terminal: Ctrl-C must not reach the server, since this process may still need Redis to give
    // messages back.
    const child = spawn(binary.path, args(directory), {
      detached: true,
      env: binary.env,
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    const watchdog = spawn(
      "/bin/sh",
      ["-c", WATCHDOG, "delayline-watchdog", String(child.pid), directory],
      { detached: true, env: { PATH: "/usr/bin:/bin" }, stdio: ["pipe", "ignore", "ignore"] },
    );
    const server = new ServerProcess(child, watchdog, directory);
    child.unref();
    watchdog.unref();
    if (watchdog.stdin instanceof Socket) watchdog.stdin.unref();
    try {
      await Promise.all([once(child, "spawn"), once(watchdog, "spawn")]);
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  /** Waits for the end of the server, and removes what it leaves. */
  async #end(watchdog: ChildProcess): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#child.once("exit", () => resolve());
      // The server could not be started.
      this.#child.once("error", () => resolve());
    });
    // Do this first: once the system reuses the server's process id, the watchdog would kill another process.
    watchdog.kill("SIGKILL");
    this.#log = this.log;
    this.#running = false;
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 10 });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get running(): boolean {
    return this.#running;
  }

  /** The last lines that the server wrote. */
  get log(): string {
    if (!this.#running) return this.#log;
    try {
      const lines = readFileSync(logFile(this.#directory), "utf8").trimEnd().split("\n");
      return lines.slice(-LOG_LINES).join("\n");
    } catch (error) {
      // Something has cleaned up the directory for temporary files.
      return String(error);
    }
  }

  /** Stops the server. It may save its data, and is killed if that takes longer than 2 s. */
  async stop(): Promise<void> {
    if (!this.#running) return await this.exited;
    // Keep this process alive until the server has ended.
    this.#child.ref();
    this.#child.kill("SIGTERM");
    const timer = networkTime.setTimeout(() => this.#child.kill("SIGKILL"), STOP_TIMEOUT);
    try {
      await this.exited;
    } finally {
      networkTime.clearTimeout(timer);
    }
  }
}

function logFile(directory: string): string {
  return join(directory, "server.log");
}

/**
 * A TCP port on 127.0.0.1 that is free at the moment.
 *
 * Another process may take it before the caller does, so a server that cannot listen on it should try another port.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    // Below the ports that kernels use for outgoing connections (from 32768 on Linux, 49152 on macOS). A client that
    // keeps reconnecting to a port in that range while its server is down may connect to itself, and the server then
    // cannot get its port back.
    const port = randomInt(20_000, 32_000);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
