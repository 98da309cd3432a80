import { Delayline } from "delayline";
import type { Order } from "../order.ts";
import { ReferenceClock } from "../reference-clock.ts";
import { serve } from "./serve.ts";

/** What a worker has taken, in the order in which it came. */
export interface Taken {
  readonly numbers: Float64Array;
  /** When each came, by the reference clock in epoch milliseconds. */
  readonly takenAt: Float64Array;
  /** How far off that may be, in milliseconds. */
  readonly uncertainty: number;
}

/** Takes orders, and notes when each came. */
class Worker {
  readonly #lines: readonly Delayline[];
  readonly #clock: ReferenceClock;
  #numbers: number[] = [];
  #takenAt: number[] = [];

  /** @param concurrency how many handlers each client may run at once. */
  constructor(
    lines: readonly Delayline[],
    clock: ReferenceClock,
    queue: string,
    concurrency: number,
  ) {
    this.#lines = lines;
    this.#clock = clock;
    for (const line of lines) {
      line.getBlockingQueue<Order>(queue).subscribe((order) => this.#note(order), { concurrency });
    }
  }

  /** How many orders have been taken since the last {@link reset}. */
  get count(): number {
    return this.#numbers.length;
  }

  get taken(): Taken {
    return {
      numbers: Float64Array.from(this.#numbers),
      takenAt: Float64Array.from(this.#takenAt),
      uncertainty: this.#clock.uncertainty,
    };
  }

  reset(): void {
    this.#numbers = [];
    this.#takenAt = [];
  }

  async close(): Promise<void> {
    await Promise.all(this.#lines.map((line) => line.close()));
  }

  #note({ number }: Order): void {
    this.#takenAt.push(this.#clock.now());
    this.#numbers.push(number);
  }
}

let worker: Worker;

const methods = {
  async open(url: string, queue: string, clients: number, concurrency: number): Promise<void> {
    const lines = Array.from({ length: clients }, () => new Delayline({ redis: url }));
    worker = new Worker(lines, await ReferenceClock.of(url), queue, concurrency);
  },
  count: () => worker.count,
  taken: () => worker.taken,
  reset: () => worker.reset(),
  close: () => worker.close(),
};

/** What the program answers to. */
export type WorkerMethods = typeof methods;

serve(methods);
