import { diag } from "@opentelemetry/api";

/**
 * Runs what is not ours: propagators, samplers, processors. What they throw is told to the user by `diag`, and goes no
 * further: thrown in a diagnostics channel, it would end the process.
 *
 * @returns what `work` returns, or undefined if it throws.
 */
export function guarded<Result>(what: string, work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    diag.error(`delayline: cannot ${what}`, error);
    return undefined;
  }
}
