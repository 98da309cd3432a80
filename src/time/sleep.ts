import { DeadlineTimer } from "./deadline-timer.ts";
import { performance } from "./runtime.ts";

/**
 * Resolves after `duration` milliseconds, however many, or as soon as one of the signals is aborted. Never rejects:
 * callers that must know why they woke look at the signals.
 */
export async function sleep(
  duration: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<void> {
  if (signals.some((signal) => signal?.aborted)) return;
  await new Promise<void>((resolve) => {
    const wake = () => {
      timer.clear();
      for (const signal of signals) signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = new DeadlineTimer(wake);
    timer.reset(performance.now() + duration);
    for (const signal of signals) signal?.addEventListener("abort", wake);
  });
}
