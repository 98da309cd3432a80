import { setMaxListeners } from "node:events";
import { ClosedError, LeftRunningError, RedisError, type DelaylineError } from "../../errors.ts";
import type { Work } from "../../redis/troubles.ts";
import { named, type Awaiter } from "../../run/awaiters.ts";
import { Patience } from "../../time/patience.ts";
import { Pause } from "../../time/pause.ts";
import { nextTick } from "../../time/runtime.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import { checkCloseOptions, type CloseOptions } from "./consumer.ts";
import { unlessAwaitedBy } from "./self-wait.ts";

/** The wait of a {@link Subscription}'s loop. */
interface TakeWait extends WaitOptions {
  readonly signal: AbortSignal;
  /** How many handlers of the loop are free. */
  readonly max: number;
}

/** Takes items of work. */
type Take<Item> = (wait: TakeWait) => Promise<readonly Item[]>;

/** How a {@link Subscription} takes and handles its items. */
export interface Handling<Item> {
  /** The queue's name. */
  readonly queue: string;
  /** Takes items of work, up to `max`; none if none came within `timeout` milliseconds. */
  readonly take: Take<Item>;
  /**
   * Starts and ends the loops. Without it there are as many as `concurrency` needs, which use {@link Handling.take}. A
   * loop resolves when its take has rejected with a `ClosedError`, or `stopping` is aborted, and its handlers have
   * finished.
   */
  readonly run?: (
    loop: (take: Take<Item>) => Promise<void>,
    stopping: AbortSignal,
  ) => Promise<unknown>;
  /** Receives the outcomes of the takes. */
  readonly takes: Work;
  /** Calls the user's handler. `closing` is aborted when the subscription begins to close. Never rejects. */
  readonly handle: (this: void, item: Item, closing: AbortSignal) => Promise<unknown>;
  /**
   * The async function of this subscription that awaits the user's handler: it gets the name by which its awaiters are
   * found.
   */
  readonly awaits: (this: void, ...args: never[]) => Promise<unknown>;
  /** Called with the items of the running handlers when the subscription begins to close. */
  readonly interrupt?: (items: readonly Item[], reason: unknown) => void;
  /** Gives up the items of handlers that `close` no longer waits for. */
  readonly abandon?: (items: readonly Item[]) => void;
  /** How many handlers may run at once. */
  readonly concurrency: number;
  /** How many of them one loop takes for: all, or each for itself. */
  readonly perLoop: number;
  readonly report: (error: DelaylineError) => void;
}

/**
 * Runs the handlers of a queue. A loop takes messages for its free handlers, starts them, and takes again.
 */
export class Subscription implements AsyncDisposable {
  readonly #queue: string;
  readonly #report: (error: DelaylineError) => void;
  readonly #handling: Handling<any>;
  readonly #stopping = new AbortController();
  /** The name of the functions that await its handlers. */
  readonly #name = `delayline subscription ${++count}`;
  readonly #crews = new Set<Crew<unknown>>();
  /** Resolves once it is closed and no handler runs. */
  readonly ended: Promise<unknown>;

  /** @internal Use `subscribe` of a queue. */
  constructor(handling: Handling<any>) {
    this.#queue = handling.queue;
    // Each running handler may listen. Node would warn of a leak from the eleventh listener on.
    setMaxListeners(0, this.#stopping.signal);
    this.#report = handling.report;
    this.#handling = handling;
    named(this.#name, handling.awaits);
    const loop = (take = handling.take) => this.#loop(take);
    const length = handling.concurrency / handling.perLoop;
    this.ended =
      handling.run?.(loop, this.#stopping.signal) ??
      Promise.all(Array.from({ length }, () => loop()));
    void this.ended.then(() => handling.takes.ended());
  }

  /** How many handlers run now, including those whose `onError` runs. */
  get running(): number {
    let running = 0;
    for (const crew of this.#crews) running += crew.busyCount;
    return running;
  }

  /** @internal */
  isAmong(callers: readonly Awaiter[]): boolean {
    return callers.some(({ name }) => name === this.#name);
  }

  /** @internal Stops taking and aborts the handlers' signal, but does not wait for the handlers. */
  stop(): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    this.#handling.interrupt?.(this.#items(), this.#stopping.signal.reason);
  }

  /**
   * Stops taking, aborts the handlers' signal, and resolves when the handlers have finished, or after
   * `handlerTimeout`. No message is lost. It may be called twice. A handler may call it, but must not await it: it would wait for itself.
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
    this.#report(new LeftRunningError(this.#queue, this.running));
    this.#handling.abandon?.(this.#items());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** What the running handlers have. */
  #items(): unknown[] {
    return [...this.#crews].flatMap((crew) => crew.items());
  }

  async #loop(take: Take<unknown>): Promise<void> {
    const { handle, perLoop } = this.#handling;
    const crew = new Crew(handle, perLoop, this.#stopping.signal);
    this.#crews.add(crew);
    await this.#feed(crew, take);
    await crew.done();
    this.#crews.delete(crew);
  }

  /** Takes for the free handlers until the subscription or the queue is closed. */
  async #feed(crew: Crew<unknown>, take: Take<unknown>): Promise<void> {
    const { signal } = this.#stopping;
    const { takes } = this.#handling;
    const pause = new Pause(100, 2000);
    let timeout = Infinity;
    while (!signal.aborted) {
      try {
        const taken = await take({ max: crew.freeCount, signal, timeout });
        takes.succeeded();
        timeout = Infinity;
        pause.reset();
        for (const item of taken) crew.start(item);
        if (crew.freeCount === 0) await crew.freed();
      } catch (error) {
        if (signal.aborted || error instanceof ClosedError) return;
        if (error instanceof RedisError) {
          // Refused (WRONGTYPE, NOPERM), until the cause is corrected. The next wait is short: its end shows soon that
          // Redis no longer refuses, even if no message comes.
          takes.failed(error);
          timeout = SHORT;
          await pause.wait();
        } else {
          this.#report(error as DelaylineError);
        }
      }
    }
  }
}

/** The handlers of one loop. */
class Crew<Item> {
  readonly #handle: Handling<Item>["handle"];
  readonly #size: number;
  readonly #closing: AbortSignal;
  /** A worker for each handler that has ever run at once. It serves one item after another. */
  readonly #workers: Worker<Item>[] = [];
  readonly #free: Worker<Item>[] = [];
  busyCount = 0;
  /** The end of the handler that was started last. */
  #last = Promise.resolve();
  #onEnd: (() => void) | undefined;

  constructor(handle: Handling<Item>["handle"], size: number, closing: AbortSignal) {
    this.#handle = handle;
    this.#size = size;
    this.#closing = closing;
  }

  get freeCount(): number {
    return this.#size - this.busyCount;
  }

  /** What the running handlers have. */
  items(): Item[] {
    return this.#workers.filter(({ isBusy }) => isBusy).map(({ item }) => item as Item);
  }

  /** Starts a handler; there must be a free one. */
  start(item: Item): void {
    this.busyCount++;
    const worker = this.#free.pop() ?? this.#newWorker();
    worker.item = item;
    worker.isBusy = true;
    this.#last = this.#handle(item, this.#closing).then(worker.leave);
  }

  /** Resolves at the end of the turn of the event loop in which a handler ended: others often end in the same turn. */
  freed(): Promise<void> {
    if (this.#size === 1) return this.#last;
    return new Promise((resolve) => (this.#onEnd = () => nextTick(resolve)));
  }

  /** Resolves when no handler runs. */
  async done(): Promise<void> {
    while (this.busyCount > 0) await this.freed();
  }

  #newWorker(): Worker<Item> {
    const leave = () => {
      worker.item = undefined;
      worker.isBusy = false;
      this.#free.push(worker);
      this.busyCount--;
      this.#onEnd?.();
      this.#onEnd = undefined;
    };
    const worker: Worker<Item> = { item: undefined, isBusy: false, leave };
    this.#workers.push(worker);
    return worker;
  }
}

/** Where a handler runs. */
interface Worker<Item> {
  item: Item | undefined;
  isBusy: boolean;
  /** Called when its handler has ended. */
  readonly leave: () => void;
}

/** How many subscriptions this process has had. */
let count = 0;

/** Milliseconds that a take waits after one that Redis refused. */
const SHORT = 1000;
