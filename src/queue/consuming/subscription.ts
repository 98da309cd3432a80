import { setMaxListeners } from "node:events";
import { ClosedError, LeftRunningError, RedisError, type DelaylineError } from "../../errors.ts";
import type { Work } from "../../redis/troubles.ts";
import { named, type Awaiter } from "../../run/awaiters.ts";
import { Patience } from "../../time/patience.ts";
import { Pause } from "../../time/pause.ts";
import { checkCloseOptions, type CloseOptions, type Consumer } from "./consumer.ts";
import { unlessAwaitedBy } from "./self-wait.ts";

/** Takes items of work. */
type Take<Item> = (wait: {
  readonly signal: AbortSignal;
  readonly timeout: number;
}) => Promise<readonly Item[]>;

/** How a {@link Subscription} takes and handles its items. */
export interface Handling<Item> {
  /** The queue's name. */
  readonly queue: string;
  /** Takes items of work: one, or none if none came within `timeout` milliseconds. */
  readonly take: Take<Item>;
  /**
   * Starts and ends the loops. Without it there are `concurrency` loops, which use {@link Handling.take}. A loop
   * resolves when its take has rejected with a `ClosedError`, or `stopping` is aborted and its handler has finished.
   */
  readonly run?: (
    loop: (take: Take<Item>) => Promise<void>,
    stopping: AbortSignal,
  ) => Promise<unknown>;
  /** Receives the outcomes of the takes. */
  readonly takes: Work;
  /** Calls the user's handler. `closing` is aborted when the subscription begins to close. Never rejects. */
  handle(this: void, item: Item, closing: AbortSignal): Promise<void>;
  /** Gives up the messages of handlers that `close` no longer waits for. */
  readonly abandon?: () => void;
  /** How many handlers may run at once. */
  readonly concurrency: number;
  readonly report: (error: DelaylineError) => void;
}

/**
 * Runs the handlers of a queue: one loop for each handler that may run at once. A loop takes a message, handles it, and
 * takes the next.
 */
export class Subscription implements Consumer, AsyncDisposable {
  readonly #queue: string;
  readonly #report: (error: DelaylineError) => void;
  readonly #abandon: () => void;
  readonly #stopping = new AbortController();
  /** The name of the functions that await its handlers. */
  readonly #name = `delayline subscription ${++count}`;
  #running = 0;
  /** Resolves once it is closed and no handler runs. */
  readonly ended: Promise<unknown>;

  /** @internal Use `subscribe` of a queue. */
  constructor(handling: Handling<any>) {
    this.#queue = handling.queue;
    // Each running handler may listen. Node would warn of a leak from the eleventh listener on.
    setMaxListeners(0, this.#stopping.signal);
    this.#report = handling.report;
    this.#abandon = handling.abandon ?? (() => {});
    const loop = named(this.#name, async (take = handling.take) => {
      await this.#loop({ ...handling, take });
    });
    this.ended =
      handling.run?.(loop, this.#stopping.signal) ??
      Promise.all(Array.from({ length: handling.concurrency }, () => loop()));
    void this.ended.then(() => handling.takes.ended());
  }

  /** How many handlers run now, including those whose `onError` runs. */
  get running(): number {
    return this.#running;
  }

  /** @internal */
  isAmong(waiting: readonly Awaiter[]): boolean {
    return waiting.some(({ name }) => name === this.#name);
  }

  /** @internal Stops taking and aborts the handlers' signal, but does not wait for the handlers. */
  stop(): void {
    this.#stopping.abort();
  }

  /**
   * Stops taking, aborts the handlers' signal, and resolves when the handlers have finished, or after `timeout`. No
   * message is lost. It may be called twice. A handler may call it, but must not await it: it would wait for itself.
   *
   * @throws {TypeError | RangeError} if an option is not legal. Nothing is stopped then.
   * @throws {TypeError} if one of its handlers awaits it. It closes nevertheless.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkCloseOptions(options);
    this.stop();
    await unlessAwaitedBy(() => [this], this.#end(options));
  }

  async #end(options: CloseOptions): Promise<void> {
    const patience = new Patience();
    if (options.handlerTimeout !== undefined) patience.limit(options.handlerTimeout);
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
          // Refused (WRONGTYPE, NOPERM), until somebody corrects the cause. The next wait is short: its end shows soon
          // that Redis no longer refuses, even if no message comes.
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

/** How many subscriptions this process has had. */
let count = 0;

/** Milliseconds that a take waits after one that Redis refused. */
const SHORT = 1000;
