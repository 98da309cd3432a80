import type { QueueCounters } from "../observe/counters.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import { callOf, checkCall, type CallOptions } from "../queue/call.ts";
import { checkOptions, checkReason, checkSignal } from "../queue/checks.ts";
import type { OpenQueue } from "../partitions/open-queue.ts";
import type { Parts } from "../partitions/parts/parts.ts";
import { Flow } from "./flow.ts";
import { checkForecast, forecastOf, type ForecastOptions, type QueueForecast } from "./forecast.ts";
import { Quarantine } from "./quarantine.ts";

/** Options of {@link QueueHandle.pause}. */
export interface PauseOptions extends CallOptions {
  /** Why, in 1 to 500 characters: `stats`, the dashboard and the doctor show it. */
  readonly reason?: string;
}

/** Returns the parts of a handle's queue. Not for users: for rooms on top that bypass the handle's methods. */
export let partsOf: (handle: QueueHandle) => Parts;

/** The operations that every handle of a queue has. */
export abstract class QueueHandle {
  /** The queue's name, which is also the Redis key of its ready messages. */
  readonly name: string;

  /** The queue's unreadable messages. */
  readonly quarantine: Quarantine;

  /** The rate at which its messages become ready. */
  readonly flow: Flow;

  readonly #open: OpenQueue;

  static {
    partsOf = (handle) => handle.#open.parts;
  }

  /** @internal */
  protected constructor(open: OpenQueue) {
    this.name = open.name;
    this.quarantine = new Quarantine(open.parts);
    this.flow = new Flow(open.flow, open.numbers);
    this.#open = open;
  }

  /**
   * Returns how many messages are delayed, ready, in flight and so on, and how late they are: for the whole queue and
   * for each partition. O(log N), one script for each partition.
   */
  async stats(options?: CallOptions): Promise<QueueStats> {
    return await this.#open.numbers.stats(checkCall(options));
  }

  /**
   * Returns how many messages and retries fall due in each of `count` spans of `step` milliseconds. O(log N) for each
   * span, fifty spans per script. Ticks of schedules are included once they are placed: 30 s or two ticks ahead.
   * `plannedUntil` of `schedules.list()` says how far that is.
   *
   * @throws {RangeError | TypeError} if an option is not legal.
   */
  async forecast(options: ForecastOptions): Promise<QueueForecast> {
    checkForecast(options);
    return await forecastOf(this.#open.numbers, options);
  }

  /**
   * Counts what this client has done with the queue since it was opened, through all handles. Does not ask Redis.
   */
  get counters(): QueueCounters {
    return this.#open.counters.snapshot();
  }

  /**
   * Pauses the queue until {@link resume}, for every process and across restarts: Redis stores the pause.
   *
   * While the queue is paused, no message becomes ready and none is handed out: waits continue, `poll(timeout)` returns undefined
   * at the end of its time, `poll()` and `drain()` return nothing, subscriptions and loops stand still. Offering, cancelling, `put`
   * and reading still work. This process reacts at once, the others within milliseconds; if the wake-up is lost, they react with
   * their next sweep, within 36 s. A message on its way to a consumer is still handed out.
   *
   * Java processes ignore the pause: they move and take due messages.
   *
   * @throws {TypeError | RangeError} if the reason is not a string of 1 to 500 characters.
   */
  async pause(options: PauseOptions = {}): Promise<void> {
    checkOptions("pause option", options, ["signal", "reason"]);
    const { signal, reason } = options;
    checkSignal(signal);
    if (reason !== undefined) checkReason(reason);
    await this.#open.pauses.pause(callOf(options), reason);
  }

  /** Ends a pause. Messages that fell due during it become ready at once, in order. */
  async resume(options?: CallOptions): Promise<void> {
    await this.#open.pauses.resume(checkCall(options));
  }

  /** Asks Redis whether the queue is paused. O(1). */
  async isPaused(options?: CallOptions): Promise<boolean> {
    return await this.#open.pauses.ask(checkCall(options));
  }
}
