import {
  RejectError,
  TimeLimitError,
  type Delivery,
  type ReliableQueue,
  type ReliableQueueOptions,
} from "../../src/index.ts";
import type { HandlerEnd } from "./ledger.ts";
import type { Shop } from "./shop.ts";
import type { SimProcess } from "./sim.ts";

/** The ways to take from a reliable queue. `route` needs messages with keys that begin with `k:`. */
export const RELIABLE_STYLES = ["subscribe", "batch", "route", "hand", "loop"] as const;

export type ReliableStyle = (typeof RELIABLE_STYLES)[number];

/** How a consumer works. */
export interface ReliableWork {
  readonly options: ReliableQueueOptions<number>;
  readonly style: ReliableStyle;
  /** Returns the sequence of a message, for `orderBy`. */
  readonly sequenceOf?: (n: number) => string;
  /** The longest that a handler works (ms). Defaults to 800. */
  readonly longest?: number;
  /** Whether somebody else should have taken the messages long ago. */
  readonly isLast?: boolean;
  /** How often an attempt fails, from 0 to 1. Defaults to 0.25. */
  readonly failing?: number;
  /** How often a call that takes is aborted, from 0 to 1. Defaults to 0.3. */
  readonly impatience?: number;
  /** Whether a handler may block its event loop for longer than its lease, and then settle. Defaults to false. */
  readonly mayFreeze?: boolean;
  /** Whether all that one call takes by hand is settled at once. Defaults to false. */
  readonly settlesTogether?: boolean;
  /** Whether a `nack` with a delay may let the lane rest. Defaults to false. */
  readonly mayHoldLane?: boolean;
  /** How long a batch waits to fill up at most (ms). Defaults to 0. */
  readonly longestWait?: number;
  /** The time of a handler, and its grace (ms). Defaults to no limit. */
  readonly time?: { readonly timeLimit: number; readonly grace: number };
  /** Called when a handler has thrown. */
  readonly onFailure?: (process: SimProcess) => void;
}

/** Takes and settles messages in one of the ways, until the client is closed. */
export function takeReliably(shop: Shop, process: SimProcess, work: ReliableWork): void {
  const queue = process.run(() => process.line.getReliableQueue<number>(shop.queue, work.options));
  const taker = new ReliableTaker(shop, process, queue, work, work.isLast);
  const { style } = work;
  shop.ledger.note(process, { joins: queue.group });
  if (style === "hand" || style === "loop") {
    void shop.sim.go(`${process.name} takes by ${style}`, process, () => taker[style]());
  } else process.run(() => taker[style]());
}

/** Takes everything that is left in each group. `isLast`: somebody else should have taken it long ago. */
export async function takeLastReliably(
  shop: Shop,
  process: SimProcess,
  all: readonly ReliableQueueOptions<number>[],
  isLast = true,
): Promise<void> {
  do {
    for (const options of all) {
      const queue = process.line.getReliableQueue<number>(shop.queue, options);
      const work = { options, style: "hand" } as const;
      await new ReliableTaker(shop, process, queue, work, isLast).takeWithin(2000);
    }
  } while (!(await shop.isEmptyWithin(0)) && shop.sim.elapsed < 3_600_000);
}

/** What becomes of an attempt. */
type Fortune = "return" | "throw" | "reject" | "die" | "freeze" | "ack" | "nack" | "extend";

/** One process that takes from a reliable queue. */
class ReliableTaker {
  readonly #shop: Shop;
  readonly #process: SimProcess;
  readonly #queue: ReliableQueue<number>;
  readonly #work: ReliableWork;
  readonly #isLast: boolean;
  #isClosed = false;
  /** The deliveries whose handlers run, by their messages; those that were given up are no longer here. */
  readonly #running = new Map<number, number>();

  constructor(
    shop: Shop,
    process: SimProcess,
    queue: ReliableQueue<number>,
    work: ReliableWork,
    isLast = false,
  ) {
    this.#shop = shop;
    this.#process = process;
    this.#queue = queue;
    this.#work = work;
    this.#isLast = isLast;
  }

  subscribe(): void {
    const { options, sequenceOf } = this.#work;
    const handle = (_n: number, delivery: Delivery<number>) => this.#handle([delivery]);
    const { onError } = this;
    const { time } = this.#work;
    if (options.exclusive === true) this.#queue.subscribe(handle, { onError, ...time });
    else {
      const concurrency = this.#shop.sim.random.between(1, 3);
      this.#queue.subscribe(handle, {
        concurrency,
        onError,
        ...time,
        ...(sequenceOf !== undefined && { orderBy: sequenceOf }),
      });
    }
  }

  batch(): void {
    const limit = this.#shop.sim.random.between(1, 3);
    const handle = (deliveries: readonly Delivery<number>[]) => this.#handle(deliveries);
    const onError = (error: unknown, deliveries: readonly Delivery<number>[]) => {
      for (const { payload } of deliveries) this.onError(error, payload);
    };
    this.#queue.subscribeBatch(handle, { limit, onError, ...this.#work.time, ...this.#wait });
  }

  /** Some batches wait. Without such work nothing is drawn. */
  get #wait(): { readonly wait?: number } {
    const { longestWait = 0 } = this.#work;
    if (longestWait === 0) return {};
    return { wait: this.#shop.sim.random.pick([0, longestWait / 20, longestWait]) };
  }

  /** Notes that a handler was given up. */
  readonly onError = (error: unknown, n: number): void => {
    if (!(error instanceof TimeLimitError) || !error.isStuck) return;
    const number = this.#running.get(n);
    this.#running.delete(n);
    if (number !== undefined) this.#shop.ledger.handlerEnded(this.#process, number, "given up");
  };

  route(): void {
    const handle = (_n: number, delivery: Delivery<number>) => this.#handle([delivery]);
    const { time } = this.#work;
    this.#queue.route({ k: handle }, { unknown: "leave", onError: this.onError, ...time });
  }

  /** Takes one or several, and settles each by hand. */
  async hand(): Promise<void> {
    while (!this.#isClosed) await this.takeWithin(this.#shop.sim.random.pick([0, 50, 700, 4000]));
  }

  async takeWithin(timeout: number): Promise<void> {
    const { sim, ledger } = this.#shop;
    const { settlesTogether = false } = this.#work;
    const limit = sim.random.between(1, settlesTogether ? 4 : 2);
    const settle = ledger.begin(this.#process, "takeMany", { timeout, group: this.#queue.group });
    let deliveries: Delivery<number>[] = [];
    let numbers: number[] = [];
    try {
      const { signal } = this.#impatience();
      deliveries = await this.#queue.takeMany({ limit, timeout, signal, ...this.#wait });
      numbers = deliveries.map((delivery) => this.#note(delivery));
      settle.answer(deliveries.length);
    } catch (error) {
      this.#isClosed = (error as { code?: unknown }).code === "CLOSED";
      settle.fail(error);
    }
    if (deliveries.length === 0 || settlesTogether) await this.#pause();
    const work = deliveries.map((delivery, i) => async () => {
      if (!settlesTogether) await this.#pause();
      await this.#settleByHand(delivery, numbers[i] ?? 0);
    });
    if (settlesTogether) await Promise.all(work.map((settleOne) => settleOne()));
    else for (const settleOne of work) await settleOne();
  }

  /** Aborts some takes, often when a message is on its way. */
  #impatience(): AbortController {
    const { sim } = this.#shop;
    const { impatience = 0.3 } = this.#work;
    const controller = new AbortController();
    if (this.#mayFail && sim.random.chance(impatience)) {
      void this.#shop.patience().then(() => controller.abort());
    }
    return controller;
  }

  /** Takes in a loop, and begins another one if Redis has refused to hand out more. */
  async loop(): Promise<void> {
    while (!this.#isClosed) {
      const { group } = this.#queue;
      const wait = this.#shop.ledger.begin(this.#process, "take", { group });
      try {
        for await (const delivery of this.#queue) {
          const number = this.#note(delivery);
          await this.#pause();
          await this.#settleByHand(delivery, number);
        }
        this.#isClosed = true;
        wait.answer("closed");
      } catch (error) {
        this.#isClosed = (error as { code?: unknown }).code === "CLOSED";
        wait.fail(error);
        await this.#pause();
      }
    }
  }

  /** Handles deliveries together, as their consumer would: the one or the other settles by hand. */
  async #handle(deliveries: readonly Delivery<number>[]): Promise<void> {
    const { ledger } = this.#shop;
    const numbers = deliveries.map((delivery) => this.#note(delivery));
    for (const [i, { payload }] of deliveries.entries())
      this.#running.set(payload, numbers[i] ?? 0);
    const fortune = this.#fortune();
    const [first] = deliveries;
    await this.#pause();
    const end = (how: HandlerEnd) => {
      for (const [i, number] of numbers.entries()) {
        const n = deliveries[i]?.payload ?? 0;
        if (this.#running.get(n) !== number) continue;
        this.#running.delete(n);
        ledger.handlerEnded(this.#process, number, how);
      }
    };
    if (first?.signal.aborted === true && this.#shop.sim.random.chance(0.5)) {
      end(first.signal.reason instanceof TimeLimitError ? "threw" : "cut short");
      throw first.signal.reason;
    }
    if (first !== undefined && (fortune === "ack" || fortune === "nack" || fortune === "extend")) {
      await this.#settle(first, numbers[0] ?? 0, fortune);
      await this.#pause();
    }
    if (first !== undefined && fortune === "freeze") {
      await this.#freeze();
      const verb = this.#shop.sim.random.pick(["ack", "extend"] as const);
      await this.#settle(first, numbers[0] ?? 0, verb);
      await this.#pause();
    }
    if (fortune === "die") this.#process.crash();
    if (fortune === "throw") {
      end("threw");
      this.#work.onFailure?.(this.#process);
      throw new Error("the handler fails");
    }
    if (fortune === "reject") {
      end("rejected");
      throw new RejectError("the handler rejects");
    }
    end("returned");
  }

  async #settleByHand(delivery: Delivery<number>, number: number): Promise<void> {
    const { random } = this.#shop.sim;
    // Now and then a consumer forgets a delivery.
    if (this.#mayFail && random.chance(0.1)) {
      this.#shop.ledger.note(this.#process, { forgotten: number });
    } else {
      const fortune = this.#fortune();
      if (fortune === "freeze") await this.#freeze();
      if (fortune === "extend" || fortune === "freeze") {
        await this.#settle(delivery, number, "extend");
        await this.#pause();
      }
      if (fortune === "die") this.#process.crash();
      await this.#settle(delivery, number, HAND[fortune]);
    }
  }

  async #settle(
    delivery: Delivery<number>,
    number: number,
    verb: "ack" | "nack" | "reject" | "extend",
  ): Promise<void> {
    const { sim, ledger } = this.#shop;
    const delay = sim.random.pick([undefined, 0, 30, 900]);
    const { mayHoldLane = false } = this.#work;
    const terms = {
      ...(verb === "nack" && delay !== undefined && { delay }),
      ...(mayHoldLane && verb === "nack" && delay === 900 && { holdLane: true }),
    };
    await ledger.call(this.#process, verb, { delivery: number, ...terms }, () => {
      if (verb === "nack") return delivery.nack(terms);
      if (verb === "reject") return delivery.reject("no good");
      return verb === "ack" ? delivery.ack() : delivery.extend(3000);
    });
  }

  get #mayFail(): boolean {
    return !this.#shop.isEnding;
  }

  #fortune(): Fortune {
    const { random } = this.#shop.sim;
    const { failing = 0.25, mayFreeze = false } = this.#work;
    if (this.#mayFail && random.chance(failing)) {
      return random.weighted({ throw: 10, nack: 8, reject: 2, die: 1, freeze: mayFreeze ? 4 : 0 });
    }
    return random.weighted({ return: 7, ack: 2, extend: 1 });
  }

  /** Blocks the event loop for longer than a lease lasts. */
  async #freeze(): Promise<void> {
    const { sim } = this.#shop;
    const { leaseTimeout = 30_000 } = this.#work.options;
    const duration = leaseTimeout * sim.random.between(2, 4);
    sim.fault({ kind: "stall", process: this.#process, duration });
    await sim.sleep(1);
  }

  async #pause(): Promise<void> {
    const { random } = this.#shop.sim;
    const { longest = 800 } = this.#work;
    await this.#shop.sim.sleep(random.chance(0.5) ? 1 : random.magnitude(1, longest));
  }

  #note(delivery: Delivery<number>): number {
    const number = this.#deliver(delivery);
    const { signal } = delivery;
    signal.addEventListener("abort", () => this.#shop.ledger.aborted(this.#process, number));
    return number;
  }

  #deliver(delivery: Delivery<number>): number {
    const { id, key, attempt, failures, fence, payload } = delivery;
    const sequence =
      this.#work.style === "subscribe" ? this.#work.sequenceOf?.(payload) : undefined;
    return this.#shop.ledger.deliver(this.#process, payload, {
      group: this.#queue.group,
      id,
      attempt,
      failures: failures.length,
      ...(key !== undefined && { key }),
      ...(fence !== undefined && { fence }),
      ...(sequence !== undefined && { sequence }),
      ...(this.#isLast && { isLast: true }),
    });
  }
}

/** The ledger knows that the handler has failed. */

/** How a consumer that takes by hand settles. */
const HAND = {
  return: "ack",
  ack: "ack",
  extend: "ack",
  freeze: "ack",
  throw: "nack",
  nack: "nack",
  reject: "reject",
  // Nothing is sent any more.
  die: "ack",
} as const;
