import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { Delayline, type DelayedQueue } from "delayline";
import { makeOrder, type Order } from "../order.ts";
import { ReferenceClock } from "../reference-clock.ts";
import { serve } from "./serve.ts";

/** What is to be offered. */
export interface OfferPlan {
  /** The number of the first order. The others follow. */
  readonly first: number;
  readonly count: number;
  /** Each delay is a whole random number of milliseconds between these. */
  readonly minDelay: number;
  readonly maxDelay: number;
}

/** What was offered, by position: the order's number less that of the first. */
export interface Offered {
  /** The deadlines that the queue has answered, in epoch milliseconds. */
  readonly deadlines: Float64Array;
  /** The reference clock's time before the offer, plus the delay: nothing may come before that. */
  readonly notBefore: Float64Array;
  /** How long it took, in milliseconds. */
  readonly duration: number;
}

/** Offers orders. It moves none: that is the workers' job. */
class Producer {
  readonly #line: Delayline;
  readonly #clock: ReferenceClock;
  readonly #queue: DelayedQueue<Order>;

  constructor(line: Delayline, clock: ReferenceClock, queue: string) {
    this.#line = line;
    this.#clock = clock;
    this.#queue = line.getDelayedQueue(queue, { transfer: false });
  }

  /**
   * Offers so many orders per second, evenly spread, each in a turn of the event loop of its own as
   * those of separate requests are, so that no two of them travel together.
   */
  async offerSteadily(plan: OfferPlan, perSecond: number): Promise<Offered> {
    const offering = this.#begin(plan);
    const startedAt = performance.now();
    const underWay: Promise<void>[] = [];
    for (let i = 0; i < plan.count; i++) {
      const ahead = startedAt + (i * 1000) / perSecond - performance.now();
      await (ahead > 0 ? sleep(ahead) : setImmediate());
      underWay.push(offering.offer(i));
    }
    await Promise.all(underWay);
    return { ...offering.offered, duration: performance.now() - startedAt };
  }

  /** Offers as fast as it can, with so many offers under way at any time. */
  async offerBusily(plan: OfferPlan, inFlight: number): Promise<Offered> {
    const offering = this.#begin(plan);
    const startedAt = performance.now();
    let next = 0;
    const offerOn = async () => {
      while (next < plan.count) await offering.offer(next++);
    };
    await Promise.all(Array.from({ length: inFlight }, offerOn));
    return { ...offering.offered, duration: performance.now() - startedAt };
  }

  async close(): Promise<void> {
    await this.#line.close();
  }

  #begin({ first, count, minDelay, maxDelay }: OfferPlan) {
    const deadlines = new Float64Array(count);
    const notBefore = new Float64Array(count);
    const offer = async (i: number) => {
      const delay = minDelay + Math.floor(Math.random() * (maxDelay - minDelay + 1));
      notBefore[i] = this.#clock.now() - this.#clock.uncertainty + delay;
      const { deadline } = await this.#queue.offer(makeOrder(first + i), delay);
      deadlines[i] = deadline;
    };
    return { offer, offered: { deadlines, notBefore } };
  }
}

let producer: Producer;

const methods = {
  async open(url: string, queue: string): Promise<void> {
    const line = new Delayline({ redis: url });
    producer = new Producer(line, await ReferenceClock.of(url), queue);
  },
  offerSteadily: (plan: OfferPlan, perSecond: number) => producer.offerSteadily(plan, perSecond),
  offerBusily: (plan: OfferPlan, inFlight: number) => producer.offerBusily(plan, inFlight),
  close: () => producer.close(),
};

/** What the program answers to. */
export type ProducerMethods = typeof methods;

serve(methods);
