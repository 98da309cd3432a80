import { Child } from "../child/child.ts";
import type { Answer, Methods, Question } from "./programs/serve.ts";

/** Milliseconds that a program may take to start. */
const PATIENCE = 60_000;

/**
 * A program of `programs/` in a process of its own, whose methods this process calls.
 *
 * The measured code must not share an event loop with the measuring code, nor a producer with a worker.
 */
export class Program<M extends Methods<M>> implements AsyncDisposable {
  readonly #child: Child<Answer>;
  #callCount = 0;

  private constructor(child: Child<Answer>) {
    this.#child = child;
  }

  /** Starts `programs/<name>.ts`. */
  static async start<M extends Methods<M>>(name: string): Promise<Program<M>> {
    const child = new Child<Answer>(new URL(`./programs/${name}.ts`, import.meta.url));
    await child.next(undefined, PATIENCE);
    return new Program<M>(child);
  }

  async call<Name extends keyof M & string>(
    method: Name,
    ...args: Parameters<M[Name]>
  ): Promise<Awaited<ReturnType<M[Name]>>> {
    const question: Question = { call: ++this.#callCount, method, args };
    await this.#child.send(question);
    const { result, error } = await this.#child.next(
      ({ call }) => call === question.call,
      Infinity,
    );
    if (error !== undefined) throw new Error(error);
    return result as Awaited<ReturnType<M[Name]>>;
  }

  /** Kills the process, whatever it is doing. */
  async kill(): Promise<void> {
    await this.#child.kill();
  }

  /** Ends the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.release();
  }
}
