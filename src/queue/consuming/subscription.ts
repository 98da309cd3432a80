import { setMaxListeners } from "node:events";
import { ClosedError, LeftRunningError, RedisError, type DelaylineError } from "../../errors.ts";
import type { Work } from "../../redis/troubles.ts";
import { Patience } from "../../time/patience.ts";
import { Pause } from "../../time/pause.ts";
import { checkCloseOptions, type CloseOptions, type Consumer } from "./consumer.ts";

/** Takes items of work. */
type Take<Item> = (wait: {
  readonly signal: AbortSignal;
  readonly timeout: number;
}) => Promise<readonly Item[]>;

/** What a {@link Subscription} needs. */
export interface Handling<Item> {
  /** The queue's name. */
  readonly queue: string;
  /** Takes one item of work, or none if none came within `timeout` milliseconds. */
  readonly take: Take<Item>;
  /**
   * Begins and ends the loops, instead of `concurrency` equal ones that take by {@link Handling.take}. A loop resolves
   * when its take has rejected with a `ClosedError`, or `stopping` was aborted and its handler has finished.
   */
  readonly run?: (
    loop: (take: Take<Item>) => Promise<void>,
    stopping: AbortSignal,
  ) => Promise<unknown>;
  /** How the takes get on. */
  readonly takes: Work;
  /** Calls the user's handler. `closing` is aborted when the subscription begins to close. Never rejects. */
  handle(this: void, item: Item, closing: AbortSignal): Promise<void>;
  /** Lets go of what is in the hands of handlers that nobody waits for any more. */
  readonly abandon?: () => void;
  /** How many handlers may run at once. */
  readonly concurrency: number;
  readonly report: (error: DelaylineError) => void;
}

/**
 * Handlers at work on a queue: as many loops as handlers may run at once, each taking a message,
 * handling it, and taking the next.
 */
export class Subscription implements Consumer, AsyncDisposable {
  readonly #queue: string;
  readonly #report: (error: DelaylineError) => void;
  readonly #abandon: () => void;
  readonly #stopping = new AbortController();
  #running = 0;
  /** Resolves when it has been closed and no handler runs any more. */
  readonly ended: Promise<unknown>;

  /** @internal Use `subscribe` of a queue. */
  constructor(handling: Handling<any>) {
    this.#queue = handling.queue;
    // Each handler that runs may listen; Node takes more than ten listeners for a leak.
    setMaxListeners(0, this.#stopping.signal);
    this.#report = handling.report;
    this.#abandon = handling.abandon ?? (() => {});
    const loop = (take = handling.take) => this.#loop({ ...handling, take });
    this.ended =
      handling.run?.(loop, this.#stopping.signal) ??
      Promise.all(Array.from({ length: handling.concurrency }, () => loop()));
    void this.ended.then(() => handling.takes.ended());
  }

  /** How many handlers run now; one whose `onError` runs counts. */
  get running(): number {
    return this.#running;
  }

  /** @internal Stops taking, and tells the handlers, but does not wait for them. */
  stop(): void {
    this.#stopping.abort();
  }

  /**
   * Stops taking, aborts the handlers' signal, and resolves when they have finished, or at the end of
   * `timeout`. No message is lost. May be called twice; must not be awaited by a handler, which would
   * wait for itself.
   *
   * @throws {TypeError | RangeError} if an option is not legal; nothing was stopped.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkCloseOptions(options);
    this.stop();
    const patience = new Patience();
    if (options.timeout !== undefined) patience.limit(options.timeout);
    if (await patience.waitFor(this.ended)) return;
    this.#report(new LeftRunningError(this.#queue, this.#running));
    this.#abandon();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #loop(handling: Handling<unknown>): Promise<void> {
    const { signal } = this.#stopping;
    const pause = new Pause(100, 2000);
    let timeout = Infinity;
    while (!signal.aborted) {
      try {
        const taken = await handling.take({ signal, timeout });
        handling.takes.succeeded();
        timeout = Infinity;
        pause.reset();
        for (const item of taken) {
          this.#running++;
          try {
            await handling.handle(item, signal);
          } finally {
            this.#running--;
          }
        }
      } catch (error) {
        if (signal.aborted || error instanceof ClosedError) return;
        if (error instanceof RedisError) {
          // Refused (WRONGTYPE, NOPERM): somebody has to mend it first. The next wait is a short one, so
          // that its end tells soon that this was done, though no message comes.
          handling.takes.failed(error);
          timeout = SHORT;
          await pause.wait();
        } else {
          this.#report(error as DelaylineError);
        }
      }
    }
  }
}

/** Milliseconds that a take waits while it is not known whether Redis refuses it. */
const SHORT = 1000;
