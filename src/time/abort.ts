import { setMaxListeners } from "node:events";

/** Calls `listener` when the signal is aborted from now on. Returns how to stop listening. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  // Many calls may share a signal. Node would warn of a leak from the eleventh listener on.
  setMaxListeners(0, signal);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}
