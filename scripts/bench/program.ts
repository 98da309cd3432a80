import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Answer, Methods, Question } from "./programs/serve.ts";

/**
 * A program of `programs/` in a process of its own, whose methods are called from here.
 *
 * What is measured must not share its event loop with what measures it, nor a producer with a worker.
 */
export class Program<M extends Methods<M>> implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #calls = new Map<number, PromiseWithResolvers>();
  #callCount = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on("message", ({ call, result, error }: Answer) => {
      const settle = this.#calls.get(call);
      this.#calls.delete(call);
      if (error === undefined) settle?.resolve(result);
      else settle?.reject(new Error(error));
    });
    child.once("exit", (code, signal) => {
      for (const { reject } of this.#calls.values()) {
        reject(new Error(`a program ended with ${signal ?? code}`));
      }
    });
  }

  /** Starts `programs/<name>.ts`. */
  static async start<M extends Methods<M>>(name: string): Promise<Program<M>> {
    const child = fork(new URL(`./programs/${name}.ts`, import.meta.url), {
      execArgv: ["--import", "tsx"],
      serialization: "advanced",
    });
    const program = new Program<M>(child);
    await Promise.race([
      once(child, "message"),
      once(child, "exit").then(() => {
        throw new Error(`the program ${name} did not start`);
      }),
    ]);
    return program;
  }

  async call<Name extends keyof M & string>(
    method: Name,
    ...args: Parameters<M[Name]>
  ): Promise<Awaited<ReturnType<M[Name]>>> {
    const call = this.#callCount++;
    const question: Question = { call, method, args };
    return await new Promise((resolve, reject) => {
      this.#calls.set(call, { resolve: resolve as (result: unknown) => void, reject });
      this.#child.send(question, (error) => error && reject(error));
    });
  }

  /** Ends the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, "exit");
    // The program ends when nobody can talk to it any more.
    this.#child.disconnect();
    await exit;
  }
}

interface PromiseWithResolvers {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}
