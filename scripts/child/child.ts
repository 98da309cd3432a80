import { spawn } from "node:child_process";
import type { ChildProcess, Serializable } from "node:child_process";
import { fileURLToPath } from "node:url";

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

/** A child process that runs a TypeScript program and exchanges messages with it. `parent.ts` is the program's side. */
export class Child<Message = unknown> {
  /** Resolves when the process has ended and all its messages have arrived. */
  readonly exit: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #name: string;
  /** Messages that no call has taken yet. */
  readonly #inbox: Message[] = [];
  readonly #waiting = new Set<() => void>();
  #ended: Exit | undefined;
  #isReleased = false;
  #stdout = "";
  #stderr = "";

  /** @param file such as `new URL("worker.ts", import.meta.url)`, or JavaScript, which starts sooner. */
  constructor(file: URL, options: ChildOptions = {}) {
    const path = fileURLToPath(file);
    this.#name = path.slice(path.lastIndexOf("/") + 1);
    const loader = path.endsWith(".ts") ? ["--import", "tsx"] : [];
    this.#child = spawn(process.execPath, [...loader, path, ...(options.args ?? [])], {
      // tsx is resolved from here.
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      env: { ...process.env, ...options.env },
      // Keeps Buffers and bigints as they are.
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
      const end = (code: number | null, signal: NodeJS.Signals | null): void => {
        this.#ended = { code, signal };
        this.#look();
        resolve(this.#ended);
      };
      this.#child.once("close", end);
      // Node.js emits no "close" for a process whose channel we have closed.
      this.#child.once("exit", (code, signal) => this.#isReleased && end(code, signal));
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
   * Waits for a matching message, and takes it. Other messages are kept for later calls.
   *
   * Rejects, quoting the standard error of the process, if the process ends first or takes more than `within`
   * milliseconds. `Infinity` waits for as long as the process lives. Defaults to 30000: a busy machine is slow to start a
   * process.
   */
  async next(
    matches: (message: Message) => boolean = () => true,
    within = 30_000,
  ): Promise<Message> {
    return await new Promise((resolve, reject) => {
      const look = (): void => {
        const index = this.#inbox.findIndex((message) => matches(message));
        const [message] = index === -1 ? [] : this.#inbox.splice(index, 1);
        if (message === undefined && this.#ended === undefined) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        if (message !== undefined) resolve(message);
        else reject(this.#failure(`${this.#end} before it sent the message`));
      };
      const isOverdue = (): void => {
        this.#waiting.delete(look);
        reject(this.#failure(`in ${within} ms did not send the message`));
      };
      const timer = within === Infinity ? undefined : setTimeout(isOverdue, within);
      this.#waiting.add(look);
      look();
    });
  }

  /**
   * Yields the messages of the process until it ends.
   *
   * Throws, quoting its standard error, if its exit code is not 0.
   */
  async *messages(): AsyncGenerator<Message> {
    for (;;) {
      while (this.#inbox.length === 0 && this.#ended === undefined) {
        await new Promise<void>((resolve) => {
          const look = (): void => {
            this.#waiting.delete(look);
            resolve();
          };
          this.#waiting.add(look);
        });
      }
      if (this.#inbox.length === 0) break;
      yield this.#inbox.shift() as Message;
    }
    if (this.#ended?.code !== 0) throw this.#failure(this.#end);
  }

  /** Closes the channel, so that a program with `endWithParent` ends, and waits for the end. */
  async release(): Promise<Exit> {
    if (this.#child.connected) {
      this.#isReleased = true;
      this.#child.disconnect();
    }
    return await this.exit;
  }

  /** Sends a signal and waits for the end. Does nothing if the process has ended. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<Exit> {
    if (this.#ended === undefined) this.#child.kill(signal);
    return await this.exit;
  }

  get #end(): string {
    return `ended (${this.#ended?.signal ?? this.#ended?.code})`;
  }

  #look(): void {
    for (const look of this.#waiting) look();
  }

  #failure(what: string): Error {
    return new Error(`${this.#name} ${what}; its stderr:\n${this.#stderr}`);
  }
}
