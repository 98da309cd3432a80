import { callSignal } from "./checks.ts";
import type { CallOptions } from "./options.ts";
import type { PauseWatch } from "./pause-watch.ts";
import type { Quarantine } from "./quarantine.ts";
import type { Queue } from "./queue.ts";

/** What every handle of a queue is made from. */
export interface HandleOptions {
  readonly queue: Pick<Queue, "name">;
  readonly pauses: Pick<PauseWatch, "pause" | "resume" | "ask">;
  readonly quarantine: Quarantine;
}

/** What every handle of a queue can do, whichever side of the queue it is about. */
export abstract class QueueHandle {
  /** The queue's name, which is also the Redis key of its ready messages. */
  readonly name: string;

  /** What nobody could read of the queue's messages. */
  readonly quarantine: Quarantine;

  readonly #pauses: HandleOptions["pauses"];

  /** @internal */
  protected constructor({ queue, pauses, quarantine }: HandleOptions) {
    this.name = queue.name;
    this.quarantine = quarantine;
    this.#pauses = pauses;
  }

  /**
   * Pauses the queue until {@link resume}, for every process and across restarts: it is a fact in Redis.
   *
   * While it is paused nothing becomes ready and nothing is handed out: whoever waits goes on waiting,
   * `poll(timeout)` returns undefined at the end of its time, `poll()` and `drain()` return nothing, subscriptions
   * and loops stand still. Offering, cancelling, `put` and reading go on. This process obeys at once, the others
   * as soon as they hear of it, which is a matter of milliseconds; where wake-ups get lost, with their next
   * sweep. A message that is on its way to a consumer at that moment is handed out.
   *
   * A Java process does not know of it: it moves due messages, and takes them.
   */
  async pause(options?: CallOptions): Promise<void> {
    await this.#pauses.pause(callSignal(options));
  }

  /** Lets a paused queue go on; what fell due meanwhile becomes ready at once, in order. */
  async resume(options?: CallOptions): Promise<void> {
    await this.#pauses.resume(callSignal(options));
  }

  /** Whether the queue is paused, as Redis says. O(1). */
  async isPaused(options?: CallOptions): Promise<boolean> {
    return await this.#pauses.ask(callSignal(options));
  }
}
