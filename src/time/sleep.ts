import { DeadlineTimer } from "./deadline-timer.ts";

/**
 * Resolves after `duration` milliseconds, however many, or as soon as `signal` is aborted. Never rejects: callers that
 * must know why they woke look at the signal.
 */
export async function sleep(duration: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return;
  await new Promise<void>((resolve) => {
    const wake = () => {
      timer.clear();
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = new DeadlineTimer(wake);
    timer.reset(performance.now() + duration);
    signal?.addEventListener("abort", wake);
  });
}
