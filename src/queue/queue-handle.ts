import type { Counters, QueueCounters } from "../observe/counters.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import { callSignal, checkInstant, checkOptions, checkSignal, checkWhole } from "./checks.ts";
import type { NumbersFace } from "./numbers.ts";
import type { CallOptions } from "./options.ts";
import type { PlacesFace } from "./places.ts";
import type { PauseWatch } from "./pause-watch.ts";
import type { Quarantine } from "./quarantine.ts";
import type { Queue } from "./queue.ts";

/** What every handle of a queue is made from. */
export interface HandleOptions {
  readonly queue: Pick<Queue, "name">;
  readonly pauses: Pick<PauseWatch, "pause" | "resume" | "ask">;
  readonly quarantine: Quarantine;
  readonly numbers: NumbersFace;
  readonly counters: Counters;
  readonly places: PlacesFace;
}

/** Options of {@link QueueHandle.forecast}. */
export interface ForecastOptions extends CallOptions {
  /** Where the first span begins: a date, or an instant in epoch milliseconds. Defaults to now, on the server's clock. */
  readonly from?: Date | number;
  /** How long each span is, in milliseconds; a whole number, 1 at least. */
  readonly step: number;
  /** How many spans: 1 to 1,000. */
  readonly count: number;
}

/** What falls due when. */
export interface Forecast {
  /** Where the first span begins (epoch ms on the server's clock). */
  readonly from: number;
  /** How long each span is (ms). */
  readonly step: number;
  /** How many messages and retries fall due in each span. */
  readonly counts: readonly number[];
}

/** Where the messages of a handle's queue are. It is for those who look past its methods, and not for users. */
export let placesOf: (handle: QueueHandle) => PlacesFace;

/** What every handle of a queue can do, whichever side of the queue it is about. */
export abstract class QueueHandle {
  /** The queue's name, which is also the Redis key of its ready messages. */
  readonly name: string;

  /** What nobody could read of the queue's messages. */
  readonly quarantine: Quarantine;

  readonly #pauses: HandleOptions["pauses"];
  readonly #numbers: NumbersFace;
  readonly #counters: Counters;
  readonly #places: PlacesFace;

  static {
    placesOf = (handle) => handle.#places;
  }

  /** @internal */
  protected constructor(open: HandleOptions) {
    const { queue, pauses, quarantine, numbers, counters, places } = open;
    this.name = queue.name;
    this.quarantine = quarantine;
    this.#pauses = pauses;
    this.#numbers = numbers;
    this.#counters = counters;
    this.#places = places;
  }

  /**
   * How many messages are where, and how late: of the whole queue, and of each partition. Messages are not read.
   * O(log N), one script for each partition.
   */
  async stats(options?: CallOptions): Promise<QueueStats> {
    return await this.#numbers.stats(callSignal(options));
  }

  /**
   * What falls due when: how many messages and retries in each of `count` spans of `step` milliseconds. O(log N) for
   * each span, a hundred per script.
   *
   * @throws {RangeError | TypeError} if an option is not legal.
   */
  async forecast(options: ForecastOptions): Promise<Forecast> {
    checkOptions("forecast option", options, ["from", "step", "count", "signal"]);
    const { step, count, signal } = options;
    checkWhole("step", step, 1, Number.MAX_SAFE_INTEGER);
    checkWhole("count", count, 1, 1000);
    checkSignal(signal);
    const from =
      options.from === undefined
        ? Math.floor((await this.#numbers.stats(signal)).serverTime)
        : checkInstant("from", options.from);
    return { from, step, counts: await this.#numbers.forecast({ from, step, count }, signal) };
  }

  /** What this client has done with the queue since it opened it, all its handles together. Redis is not asked. */
  get counters(): QueueCounters {
    return this.#counters.snapshot();
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
