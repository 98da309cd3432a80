import { setTimeout as sleep } from "node:timers/promises";
import type { DelaylineOptions } from "../../src/index.ts";
import { newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { ascending } from "../helpers/numbers.ts";
import { uniqueName } from "../helpers/redis.ts";
import { Offering, OUTLAST } from "./offering.ts";

/** Milliseconds between two offers: 200 a second. */
const INTERVAL = 5;

/** Milliseconds after which a message that was lost on the wire comes again. */
const LEASE = 2000;

/** A working producer and consumer, and the history of each message. Instants are from `performance.now()`. */
export class Traffic extends Offering {
  readonly name = uniqueName();
  readonly receivedAt = new Map<number, number>();

  /**
   * Begins at once; ends with the test. Messages are due after `delay` milliseconds.
   *
   * The queue is reliable: a plain one loses a message whose bytes are on the wire when a connection is cut, and nothing would
   * tell that from an offer that was lost.
   */
  constructor(options: () => DelaylineOptions, delay: number) {
    super();
    const settings = { leaseTimeout: LEASE, maxAttempts: 1000 };
    const consumer = newLineThatMayFail(options());
    consumer.getReliableQueue<number>(this.name, settings).subscribe((i) => {
      this.receivedAt.set(i, performance.now());
    });
    const producer = newLineThatMayFail({ ...options(), transfer: false, callTimeout: OUTLAST });
    const queue = producer.getReliableQueue<number>(this.name, settings);
    this.begin((i) => queue.offer(i, delay), INTERVAL);
  }

  /** Resolves when some messages have arrived. */
  async isFlowing(): Promise<void> {
    const before = this.receivedAt.size;
    await eventually(() => this.receivedAt.size >= before + 20, { within: 30_000 });
  }

  /**
   * Stops offering, and waits until every offer is settled and every message has arrived, or until the last one has and
   * nothing more arrives for two seconds.
   */
  async end(): Promise<void> {
    await this.settled();
    const last = Math.max(...this.acknowledgedAt.keys());
    await eventually(() => this.receivedAt.has(last), { within: 30_000, what: "the last arrives" });
    let count = 0;
    while (count < this.receivedAt.size && this.lostAt.length > 0) {
      count = this.receivedAt.size;
      await sleep(2000);
    }
  }

  /** Ascending instants at which the messages were acknowledged that did not arrive. */
  get lostAt(): number[] {
    const lost = [...this.acknowledgedAt].filter(([i]) => !this.receivedAt.has(i));
    return ascending(lost.map(([, at]) => at));
  }

  /** Milliseconds from `at` until a message offered after `at` was delivered. */
  untilDelivered(at: number): number {
    return this.until(at, this.receivedAt);
  }
}
