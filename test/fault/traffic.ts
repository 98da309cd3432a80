import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { OfferError } from "../../src/index.ts";
import type { DelaylineOptions } from "../../src/index.ts";
import { newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { uniqueName } from "../helpers/redis.ts";

/** Milliseconds between two offers: 200 a second. */
const INTERVAL = 5;

/** Milliseconds that an offer may take here: longer than any failover. */
const OUTLAST = 60_000;

/** A producer and a consumer at work, and what became of each message, by `performance.now()`. */
export class Traffic {
  readonly name = uniqueName();
  readonly offeredAt = new Map<number, number>();
  readonly acknowledgedAt = new Map<number, number>();
  readonly rejected = new Map<number, OfferError>();
  readonly receivedAt = new Map<number, number>();
  readonly #timer: NodeJS.Timeout;
  #settled = 0;

  /** Begins at once; ends with the test. Messages are due after `delay` milliseconds. */
  constructor(options: () => DelaylineOptions, delay: number) {
    const consumer = newLineThatMayFail(options());
    consumer.getBlockingQueue<number>(this.name).subscribe((i) => {
      this.receivedAt.set(i, performance.now());
    });
    const producer = newLineThatMayFail({ ...options(), transfer: false, callTimeout: OUTLAST });
    const queue = producer.getDelayedQueue<number>(this.name);
    this.#timer = setInterval(() => {
      const i = this.offeredAt.size;
      this.offeredAt.set(i, performance.now());
      queue
        .offer(i, delay)
        .then(
          () => this.acknowledgedAt.set(i, performance.now()),
          (error: OfferError) => this.rejected.set(i, error),
        )
        .finally(() => this.#settled++);
    }, INTERVAL);
    onTestFinished(() => this.stop());
  }

  /** Stops offering. */
  stop(): void {
    clearInterval(this.#timer);
  }

  /** Resolves when some messages have arrived. */
  async isFlowing(): Promise<void> {
    const before = this.receivedAt.size;
    await eventually(() => this.receivedAt.size >= before + 20, { within: 30_000 });
  }

  /**
   * Stops offering, and waits until every offer is settled and every message has arrived; or the one offered last has,
   * and for two seconds nothing more does.
   */
  async end(): Promise<void> {
    this.stop();
    await eventually(() => this.#settled === this.offeredAt.size, { within: OUTLAST });
    const last = Math.max(...this.acknowledgedAt.keys());
    await eventually(() => this.receivedAt.has(last), { within: 30_000, what: "the last arrives" });
    let count = 0;
    while (count < this.receivedAt.size && this.lostAt.length > 0) {
      count = this.receivedAt.size;
      await sleep(2000);
    }
  }

  /** When the messages were acknowledged that did not arrive, in order. */
  get lostAt(): number[] {
    return [...this.acknowledgedAt]
      .filter(([i]) => !this.receivedAt.has(i))
      .map(([, at]) => at)
      .toSorted((a, b) => a - b);
  }

  /** Milliseconds from `at` until an offer made after `at` was acknowledged. */
  untilAcknowledged(at: number): number {
    return this.#until(at, this.acknowledgedAt);
  }

  /** Milliseconds from `at` until a message offered after `at` was delivered. */
  untilDelivered(at: number): number {
    return this.#until(at, this.receivedAt);
  }

  #until(at: number, done: ReadonlyMap<number, number>): number {
    const instants = [...done].filter(([i]) => (this.offeredAt.get(i) ?? 0) > at);
    return Math.min(...instants.map(([, instant]) => instant)) - at;
  }
}
