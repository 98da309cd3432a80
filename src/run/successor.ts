import { queueTime } from "../time/runtime.ts";
import type { WaitOptions } from "./waiters.ts";

/** Waits for up to `max` messages. */
type Wait<Message> = (max: number, options: WaitOptions) => Promise<readonly Message[]>;

/** Tells a wait that its source is left. It goes on at the successor, so this never leaves this file. */
const LEFT = new Error("the messages are elsewhere");

/**
 * Where the waits of a source go on once the source is left, because the queue was given partitions. A wait that is
 * under way then has only the rest of its time.
 */
export class Successor<Message> {
  #next: Wait<Message> | undefined;

  /** Waits here, by `wait`; and goes on at the successor if the source is left during the wait. */
  after(wait: Wait<Message>, max: number, options: WaitOptions): Promise<readonly Message[]> {
    const startedAt = options.timeout === Infinity ? 0 : queueTime.now();
    // Not async, like all functions that every message passes: an async frame costs near a kilobyte.
    return wait(max, options).catch((error: unknown) => {
      if (error !== LEFT || this.#next === undefined) throw error;
      return this.#next(max, restOf(options, startedAt));
    });
  }

  /** The source is left: its waits go on by `next`. `dismiss` rejects those that are under way. */
  leave(next: Wait<Message>, dismiss: (reason: Error) => void): void {
    this.#next = next;
    dismiss(LEFT);
  }
}

/** The options of a wait that began at `startedAt` (`queueTime.now()`) and has to begin again now. */
function restOf(options: WaitOptions, startedAt: number): WaitOptions {
  if (options.timeout === Infinity) return options;
  return { ...options, timeout: Math.max(0, options.timeout - (queueTime.now() - startedAt)) };
}
