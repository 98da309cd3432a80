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

/** Lets the process that forked this one call these methods, and ends this one with it. */
export function serve<M extends Methods<M>>(methods: M): void {
  process.on("message", ({ call, method, args }: Question) => {
    void (async () => {
      try {
        const run = methods[method as keyof M] as unknown as (
          ...args: readonly unknown[]
        ) => unknown;
        answer({ call, result: await run(...args) });
      } catch (error) {
        answer({
          call,
          error: error instanceof Error ? (error.stack ?? error.message) : String(error),
        });
      }
    })();
  });
  process.once("disconnect", () => process.exit());
  answer({ call: -1 });
}

function answer(message: Answer): void {
  process.send?.(message);
}
