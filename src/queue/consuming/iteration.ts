import { ClosedError } from "../../errors.ts";
import { awaiters, type Awaiter } from "../../run/awaiters.ts";
import type { Consumer } from "./consumer.ts";

/**
 * One `for await` loop over the messages of a queue, from its first message until it is left.
 *
 * A generator does not see the body of its loop, but the body runs from each `yield` until the next call. `break`,
 * `return` and `throw` end the generator too. The loop cannot notice that an iterator called by hand was dropped.
 */
export class Iteration<T> implements Consumer {
  readonly ended: Promise<void>;
  readonly #take: (stopping: AbortSignal) => Promise<T>;
  readonly #stopping = new AbortController();
  /** Where the function with the loop begins; empty if that is not known. */
  #loopsAt: string | undefined;
  #running = 0;
  #end: () => void = () => {};

  /** `take` ends the loop by rejecting with a {@link ClosedError}: the reason of its signal is one. */
  constructor(take: (stopping: AbortSignal) => Promise<T>) {
    this.#take = take;
    this.ended = new Promise((resolve) => (this.#end = resolve));
  }

  get running(): number {
    return this.#running;
  }

  /** Ends the wait for the next message, and with it any call that waits for a Redis that is down. */
  stop(): void {
    this.#stopping.abort(new ClosedError("the client"));
  }

  isAmong(callers: readonly Awaiter[]): boolean {
    const at = this.#loopsAt;
    // Where several loops of one function run, the position does not tell which of them waits.
    if (
      at === "" ||
      [...live].some((one) => one !== this && one.#loopsAt === at && one.running > 0)
    )
      return false;
    return callers.some(({ position }) => position !== undefined && position === at);
  }

  async *messages(): AsyncGenerator<T, void, void> {
    live.add(this);
    try {
      for (;;) {
        let payload: T;
        try {
          payload = await this.#take(this.#stopping.signal);
        } catch (error) {
          if (error instanceof ClosedError) return;
          throw error;
        }
        // The first is the generator that delegates to this one, for each kind of queue.
        this.#loopsAt ??= awaiters()[1]?.position ?? "";
        this.#running = 1;
        yield payload;
        this.#running = 0;
      }
    } finally {
      this.#running = 0;
      live.delete(this);
      this.#end();
    }
  }
}

/** The loops of this process. */
const live = new Set<Iteration<any>>();
