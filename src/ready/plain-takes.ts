import { WrongHandleError, type DelaylineError } from "../errors.ts";
import type { Queue } from "../queue/queue.ts";

/**
 * This client's calls that take from the ready LISTs of one queue.
 *
 * If the queue is reliable, due messages go into its stream, so these calls get nothing. That is reported once, and
 * again only if the queue was plain in between. The knowledge about the stream may be outdated when a call begins, so
 * Redis is asked again before the report.
 */
export class PlainTakes {
  readonly #name: string;
  readonly #report: (error: DelaylineError) => void;
  /** The parts of the queue that have a stream, as far as this client knows. */
  readonly #reliable = new Set<Queue>();
  #count = 0;
  #isAsking = false;
  #isTold = false;

  constructor(name: string, report: (error: DelaylineError) => void) {
    this.#name = name;
    this.#report = report;
  }

  /** A call begins to take. */
  noteBegun(): void {
    this.#count++;
    if (this.#reliable.size > 0 && !this.#isTold && !this.#isAsking) void this.#ask();
  }

  /** The call is done. */
  noteDone(): void {
    this.#count--;
  }

  /** Notes whether a part of the queue has a stream. */
  noteStream(queue: Queue, exists: boolean): void {
    if (exists) this.#reliable.add(queue);
    else this.#reliable.delete(queue);
    if (this.#reliable.size === 0) this.#isTold = false;
    else if (this.#count > 0) this.#tell();
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    const asked = Array.from(this.#reliable, (queue) =>
      queue.call("look at", (redis) => queue.askForStream(redis)),
    );
    const replies = await Promise.allSettled(asked);
    this.#isAsking = false;
    // The call that asked may be done by now.
    const isKnown = replies.every(({ status }) => status === "fulfilled");
    if (isKnown && this.#reliable.size > 0) this.#tell();
  }

  #tell(): void {
    if (this.#isTold) return;
    this.#isTold = true;
    const what =
      "is reliable, so due messages go into its stream, but this client takes from it by getBlockingQueue, which gets none of them: use getReliableQueue, or make the queue plain (makePlain)";
    this.#report(new WrongHandleError(this.#name, what));
  }
}
