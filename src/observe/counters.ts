import { Histogram, type HistogramSnapshot } from "./histogram.ts";

/** What one client has done with a queue since it opened it. */
export interface QueueCounters {
  /** Messages that Redis has stored: what was offered and not rejected, and what was put to the ready messages. */
  readonly offered: number;
  /** Messages that this client has moved to where they are ready. Retries count, too. */
  readonly transferred: number;
  /**
   * Messages that were handed out: to a caller, a loop or a handler. Of a plain queue all that left Redis for one, also what the codec
   * could not read.
   */
  readonly taken: number;
  /** Deliveries that were acknowledged. */
  readonly acknowledged: number;
  /** Deliveries that failed, and whose message comes back. */
  readonly retried: number;
  /** Messages that were taken from a consumer that died. */
  readonly reclaimed: number;
  /** Deliveries whose message became a dead letter. */
  readonly dead: number;
  /** Messages that were cancelled, removed or cleared while they were delayed, or waited for a retry. */
  readonly cancelled: number;
  /** Handlers that threw or rejected, but for those that were cut short as their subscription closed. */
  readonly failed: number;
  /**
   * From the deadline until the message was moved (ms), of those that this client moved; of one that was offered with a
   * deadline in the past, from its offer. The messages of one batch count as late as the oldest of them.
   * What was due while the queue was paused counts from its deadline, and so does what was rescheduled into the past.
   */
  readonly systemLateness: HistogramSnapshot;
  /** From when the message became ready until it was taken (ms); of a reliable queue only. */
  readonly backlogLateness: HistogramSnapshot;
  /** How long handlers ran (ms). */
  readonly handling: HistogramSnapshot;
}

/** Counts what a client does with a queue, all its partitions together. Whoever does it adds to the number. */
export class Counters {
  /** The queue's name; of one in partitions that of the whole queue. */
  readonly queue: string;
  offered = 0;
  transferred = 0;
  taken = 0;
  acknowledged = 0;
  retried = 0;
  reclaimed = 0;
  dead = 0;
  cancelled = 0;
  failed = 0;
  readonly systemLateness = new Histogram();
  readonly backlogLateness = new Histogram();
  readonly handling = new Histogram();

  constructor(queue: string) {
    this.queue = queue;
  }

  /** A handler has ended that began then (`performance.now()`). */
  handled(startedAt: number): void {
    this.handling.record(performance.now() - startedAt);
  }

  snapshot(): QueueCounters {
    const { queue: _, systemLateness, backlogLateness, handling, ...counts }: Counters = this;
    return {
      ...counts,
      systemLateness: systemLateness.snapshot(),
      backlogLateness: backlogLateness.snapshot(),
      handling: handling.snapshot(),
    };
  }
}
