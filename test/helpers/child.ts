import { spawn } from "node:child_process";
import type { ChildProcess, Serializable } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export interface ChildOptions {
  /** Arguments of the program. */
  readonly args?: readonly string[];
  /** More environment variables. */
  readonly env?: NodeJS.ProcessEnv;
}

/** How a child process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * Runs a TypeScript program as a process of its own, which is killed when the test has finished.
 *
 * The program talks to us with `process.send` and `process.on("message")`.
 *
 * @param file such as `new URL("../helpers/programs/hold-redis.ts", import.meta.url)`.
 */
export function startChild<Message = unknown>(file: URL, options?: ChildOptions): Child<Message> {
  const child = new Child<Message>(file, options);
  onTestFinished(async () => {
    await child.kill();
  });
  return child;
}

/** A child process that runs a TypeScript program. */
export class Child<Message = unknown> {
  /** Resolves when the process has ended and everything that it sent has arrived. */
  readonly exit: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #name: string;
  /** Messages that nobody has waited for yet. */
  readonly #inbox: Message[] = [];
  readonly #waiting = new Set<() => void>();
  #ended: Exit | undefined;
  #stdout = "";
  #stderr = "";

  constructor(file: URL, options: ChildOptions = {}) {
    const path = fileURLToPath(file);
    this.#name = path.slice(path.lastIndexOf("/") + 1);
    this.#child = spawn(process.execPath, ["--import", "tsx", path, ...(options.args ?? [])], {
      // Where tsx is found.
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      env: { ...process.env, ...options.env },
      // Buffers and bigints arrive as such.
      serialization: "advanced",
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.#child.stdout?.on("data", (chunk: Buffer) => (this.#stdout += chunk.toString()));
    this.#child.stderr?.on("data", (chunk: Buffer) => (this.#stderr += chunk.toString()));
    this.#child.on("message", (message) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The program is the test's own.
      this.#inbox.push(message as Message);
      this.#look();
    });
    this.exit = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (code, signal) => {
        this.#ended = { code, signal };
        this.#look();
        resolve(this.#ended);
      });
    });
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error(`${this.#name} could not be started`);
    return pid;
  }

  /** What the process has written to its standard output so far. */
  get stdout(): string {
    return this.#stdout;
  }

  /** What the process has written to its standard error so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Sends a message to the process. */
  async send(message: Serializable): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#child.send(message, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  /**
   * Waits for a message, and takes it. Messages that do not match are kept for later calls.
   *
   * Fails, with what the process wrote to its standard error, if it ends before that or takes more
   * than `within` milliseconds, 10000 by default.
   */
  async next(
    matches: (message: Message) => boolean = () => true,
    within = 10_000,
  ): Promise<Message> {
    return await new Promise((resolve, reject) => {
      const look = (): void => {
        const index = this.#inbox.findIndex((message) => matches(message));
        const [message] = index === -1 ? [] : this.#inbox.splice(index, 1);
        if (message === undefined && this.#ended === undefined) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        if (message !== undefined) resolve(message);
        else {
          const how = this.#ended?.signal ?? this.#ended?.code;
          reject(this.#failure(`ended (${how}) before it sent`));
        }
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        reject(this.#failure(`in ${within} ms did not send`));
      }, within);
      this.#waiting.add(look);
      look();
    });
  }

  /** Sends a signal and waits for the end. Does nothing if the process has ended. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<Exit> {
    if (this.#ended === undefined) this.#child.kill(signal);
    return await this.exit;
  }

  #look(): void {
    for (const look of this.#waiting) look();
  }

  #failure(what: string): Error {
    return new Error(`${this.#name} ${what} what was waited for; its stderr:\n${this.#stderr}`);
  }
}
