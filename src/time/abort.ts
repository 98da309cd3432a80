import { setMaxListeners } from "node:events";

/** Whether a value is an AbortSignal, also one that a test environment such as jsdom has of its own. */
export function isAbortSignal(value: unknown): value is AbortSignal {
  if (value instanceof AbortSignal) return true;
  return Object.prototype.toString.call(value) === "[object AbortSignal]";
}

/** Calls `listener` when the signal is aborted from now on. Returns how to stop listening. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  // Many calls may share a signal. Node would warn of a leak from the eleventh listener on.
  if (signal instanceof EventTarget) setMaxListeners(0, signal);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/**
 * Settles as `doing` does, or rejects with the reason of `signal` once that is aborted. Callers that wait for the same
 * promise go on in the order in which they came, with and without a signal.
 */
export function orAborted<Result>(doing: Promise<Result>, signal?: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) reject(signal.reason as Error);
    const unlisten = signal && onAbort(signal, () => reject(signal.reason as Error));
    doing.then(resolve, reject).finally(unlisten);
  });
}
