import { diag } from "@opentelemetry/api";

/**
 * Runs code of the user's SDK: propagators, samplers, processors. Its errors are reported by `diag`: thrown in a
 * diagnostics channel, they would end the process.
 *
 * @returns the result of `work`, or undefined if it throws.
 */
export function guarded<Result>(what: string, work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    diag.error(`delayline: cannot ${what}`, error);
    return undefined;
  }
}
