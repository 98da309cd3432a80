import { onAbort } from "./abort.ts";
import { DeadlineTimer } from "./deadline-timer.ts";
import { networkTime, presenceTime, queueTime, type Time } from "./runtime.ts";

/**
 * Sleeps on the queue's time. Resolves after `duration` milliseconds, however many, or as soon as one of the signals is aborted. Never rejects:
 * callers that must know why they woke look at the signals.
 */
export function sleep(
  duration: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<void> {
  return sleepOn(queueTime, duration, signals);
}

/** The same on the time of presence: the wait for what another process holds while it is alive. */
export function sleepForPresence(
  duration: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<void> {
  return sleepOn(presenceTime, duration, signals);
}

/** The same on the network's time: the bound of a wait for a server, or a pause after a failure. */
export function sleepForNetwork(
  duration: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<void> {
  return sleepOn(networkTime, duration, signals);
}

async function sleepOn(
  time: Time,
  duration: number,
  signals: readonly (AbortSignal | undefined)[],
): Promise<void> {
  if (signals.some((signal) => signal?.aborted)) return;
  await new Promise<void>((resolve) => {
    const wake = () => {
      timer.clear();
      for (const unlisten of unlisteners) unlisten?.();
      resolve();
    };
    const timer = new DeadlineTimer(wake, time);
    timer.reset(time.now() + duration);
    const unlisteners = signals.map((signal) => signal && onAbort(signal, wake));
  });
}
