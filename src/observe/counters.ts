import { Histogram, type HistogramSnapshot } from "./histogram.ts";
import { queueTime } from "../time/runtime.ts";

/** Counts of what one client has done with a queue since it opened the queue. */
export interface QueueCounters {
  /** Messages that Redis stored: accepted offers, and payloads that were `put` among the ready messages. */
  readonly offered: number;
  /** Due messages and retries that this client made ready. */
  readonly transferred: number;
  /** Due messages that this client dropped because of their `onlyIf` or `deliverWithin`. */
  readonly dropped: number;
  /**
   * Messages that were handed to a caller, a loop or a handler. For a plain queue, all that were taken out of Redis for
   * one, even if the codec could not read them.
   */
  readonly taken: number;
  /** Deliveries that were acknowledged. */
  readonly acknowledged: number;
  /** Deliveries that failed, and whose message is delivered again. */
  readonly retried: number;
  /** Messages that were reclaimed from dead consumers. */
  readonly reclaimed: number;
  /** Deliveries whose message became a dead letter. */
  readonly dead: number;
  /** Messages that were cancelled, removed or cleared while they were delayed or waited for a retry. */
  readonly cancelled: number;
  /** Messages of a reliable queue that were revoked, wherever they were. */
  readonly revoked: number;
  /**
   * Handlers that threw or rejected, or did not end in time; except those that were cut short when their subscription closed,
   * and those whose message was revoked or given to another consumer before it was settled.
   */
  readonly failed: number;
  /** Handlers of a reliable queue that ran for their `timeLimit`. Those that did not end well after that count as failed, too. */
  readonly timedOut: number;
  /**
   * Milliseconds from a message's deadline, or with a rate from its turn, until this client moved it. All messages of a
   * batch count as late as the oldest one.
   *
   * A message that was offered with a deadline in the past counts from its offer. One that was due while the queue was
   * paused, or was rescheduled into the past, counts from its deadline.
   */
  readonly systemLateness: HistogramSnapshot;
  /**
   * Milliseconds for which messages of a queue with a rate had to wait for their turn. That is no part of `systemLateness`. All
   * messages of a batch count as having waited as long as the oldest one.
   */
  readonly waited: HistogramSnapshot;
  /** Milliseconds from when a message of a reliable queue became ready until it was taken. */
  readonly backlogLateness: HistogramSnapshot;
  /** Milliseconds that handlers ran. */
  readonly handling: HistogramSnapshot;
}

/** Counts what a client does with a queue and all its partitions. The code that does it increments the counts. */
export class Counters {
  /** The queue's name; for a partition, the name of the whole queue. */
  readonly queue: string;
  offered = 0;
  transferred = 0;
  dropped = 0;
  taken = 0;
  acknowledged = 0;
  retried = 0;
  reclaimed = 0;
  dead = 0;
  cancelled = 0;
  revoked = 0;
  failed = 0;
  timedOut = 0;
  readonly systemLateness = new Histogram();
  readonly waited = new Histogram();
  readonly backlogLateness = new Histogram();
  readonly handling = new Histogram();

  constructor(queue: string) {
    this.queue = queue;
  }

  /** Records that a handler has ended, which began at `startedAt` (`queueTime.now()`). */
  handlerEnded(startedAt: number): void {
    this.handling.record(queueTime.now() - startedAt);
  }

  snapshot(): QueueCounters {
    const {
      queue: _,
      systemLateness,
      waited,
      backlogLateness,
      handling,
      ...counts
    }: Counters = this;
    return {
      ...counts,
      systemLateness: systemLateness.snapshot(),
      waited: waited.snapshot(),
      backlogLateness: backlogLateness.snapshot(),
      handling: handling.snapshot(),
    };
  }
}
