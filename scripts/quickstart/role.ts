import { fork, type ChildProcess } from "node:child_process";

/** An event of an order: its number, and an instant in epoch milliseconds on Redis's clock. */
export type OrderEvent = readonly [order: number, at: number];

/** A part of the quickstart that runs as a process of its own. */
export class Role {
  /** Settles when the process has said that it is ready, or has ended instead. */
  readonly ready: Promise<void>;
  readonly #name: string;
  readonly #child: ChildProcess;
  /** Settles when the process has ended and everything that it reported has arrived. */
  readonly #closed: Promise<unknown>;

  /** Starts `program`, which speaks to us through `parent.ts`. */
  constructor(
    name: string,
    program: URL,
    env: NodeJS.ProcessEnv,
    onEvents: (events: readonly OrderEvent[]) => void,
  ) {
    this.#name = name;
    // With our own Node options, so TypeScript runs there as it runs here.
    this.#child = fork(program, { env: { ...process.env, ...env } });
    this.#closed = new Promise((resolve) => this.#child.once("close", resolve));
    this.ready = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("exit", () => reject(this.#failure()));
      this.#child.on("message", (message) => {
        if (message === "ready") resolve();
        else onEvents(message as OrderEvent[]);
      });
    });
    // Whoever awaits it hears of it.
    this.ready.catch(() => {});
  }

  /** @throws {Error} if the process has failed. */
  check(): void {
    const { exitCode, signalCode } = this.#child;
    if ((exitCode ?? 0) !== 0 || signalCode !== null) throw this.#failure();
  }

  /** Asks the process to finish what it has in hand and to end, as a deployment does. */
  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#closed;
    this.check();
  }

  /** Ends the process if it still runs. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #failure(): Error {
    const { exitCode, signalCode } = this.#child;
    return new Error(`the ${this.#name} ended with ${signalCode ?? `exit code ${exitCode}`}`);
  }
}
