import { endWithParent, tell } from "../../child/parent.ts";

/** The methods of a program: functions by name. */
export type Methods<M> = { readonly [Name in keyof M]: (...args: never[]) => unknown };

/** Sent to a program. */
export interface Question {
  readonly call: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** Sent back. */
export interface Answer {
  readonly call: number;
  readonly result?: unknown;
  readonly error?: string;
}

/** Offers these methods to the process that started this one, and ends this process with it. */
export function serve<M extends Methods<M>>(methods: M): void {
  process.on("message", ({ call, method, args }: Question) => {
    void (async () => {
      try {
        const run = methods[method as keyof M] as unknown as (
          ...args: readonly unknown[]
        ) => unknown;
        await answer({ call, result: await run(...args) });
      } catch (error) {
        await answer({
          call,
          error: error instanceof Error ? (error.stack ?? error.message) : String(error),
        });
      }
    })();
  });
  endWithParent();
  void answer({ call: STARTED });
}

/** Not the number of a call: says that the program has started. */
const STARTED = 0;

const answer = (message: Answer): Promise<void> => tell(message);
