import { ClosedError, HandlerError, RedisError, type DelaylineError } from "../errors.ts";
import { Pause } from "../time/pause.ts";

/** Called with each payload; the next follows when it has returned and its promise is settled. */
export type Handler<T> = (payload: T) => unknown;

/**
 * Handlers at work on a queue: as many loops as handlers may run at once, each taking a message,
 * handling it, and taking the next.
 */
export class Subscription implements AsyncDisposable {
  readonly #stopping = new AbortController();
  /** Resolves when it has been closed and no handler runs any more. */
  readonly ended: Promise<unknown>;

  /** @internal Use `BlockingQueue.subscribe`. */
  constructor(
    queue: string,
    take: (signal: AbortSignal) => Promise<unknown>,
    handler: Handler<never>,
    concurrency: number,
    report: (error: DelaylineError) => void,
  ) {
    const loop = async () => {
      const { signal } = this.#stopping;
      const pause = new Pause(100, 2000);
      while (!signal.aborted) {
        let payload: unknown;
        try {
          payload = await take(signal);
          pause.reset();
        } catch (error) {
          if (signal.aborted || error instanceof ClosedError) return;
          report(error as DelaylineError);
          // Refused by Redis (WRONGTYPE, NOPERM): somebody has to mend it first.
          if (error instanceof RedisError) await pause.wait();
          continue;
        }
        try {
          await handler(payload as never);
        } catch (error) {
          report(new HandlerError(queue, error));
        }
      }
    };
    this.ended = Promise.all(Array.from({ length: concurrency }, loop));
  }

  /**
   * Stops taking, and resolves when the running handlers have finished. No message is lost. May be
   * called twice; must not be awaited by a handler, which would wait for itself.
   */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
