import { ClosedError } from "../../errors.ts";
import type { Consumer } from "./consumer.ts";

/**
 * One `for await` loop over the messages of a queue, from its first message until it is left.
 *
 * A generator does not see the body of its loop, but the body runs from each `yield` until the next call. `break`,
 * `return` and `throw` end the generator too. It does not notice when an iterator that was called by hand is dropped.
 */
export class Iteration<T> implements Consumer {
  readonly ended: Promise<void>;
  readonly #take: () => Promise<T>;
  #running = 0;
  #end: () => void = () => {};

  /** `take` rejects with a {@link ClosedError} when there is nothing more to take: that ends the loop. */
  constructor(take: () => Promise<T>) {
    this.#take = take;
    this.ended = new Promise((resolve) => (this.#end = resolve));
  }

  get running(): number {
    return this.#running;
  }

  /** Does nothing: the next take rejects with a {@link ClosedError}. */
  stop(): void {}

  async *messages(): AsyncGenerator<T, void, void> {
    try {
      for (;;) {
        let payload: T;
        try {
          payload = await this.#take();
        } catch (error) {
          if (error instanceof ClosedError) return;
          throw error;
        }
        this.#running = 1;
        yield payload;
        this.#running = 0;
      }
    } finally {
      this.#running = 0;
      this.#end();
    }
  }
}
