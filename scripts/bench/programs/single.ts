import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { makeOrder, type Order } from "../order.ts";
import { serve } from "./serve.ts";

/** One process that does one thing as fast as it can. All rates are messages per second. */
let line: Delayline;

/** Nothing falls due while offers are measured. */
const randomDelay = () => 3_600_000 + Math.floor(Math.random() * 3_600_000);

const offers = () => line.getDelayedQueue<Order>("orders");
const ready = () => line.getBlockingQueue<Order>("orders");

async function perSecond(count: number, work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (count / (performance.now() - startedAt)) * 1000;
}

const methods = {
  open(url: string): void {
    line = new Delayline({ redis: url });
  },

  /** Offers with so many calls outstanding at any time. */
  async offerInFlight(count: number, inFlight: number): Promise<number> {
    const queue = offers();
    let next = 0;
    const offerOn = async () => {
      while (next < count) await queue.offer(makeOrder(next++), randomDelay());
    };
    return await perSecond(count, () => Promise.all(Array.from({ length: inFlight }, offerOn)));
  },

  /** Offers by `offerMany`, so many messages per call, one call after the other. */
  async offerMany(count: number, perCall: number): Promise<number> {
    const queue = offers();
    return await perSecond(count, async () => {
      for (let first = 0; first < count; first += perCall) {
        await queue.offerMany(
          Array.from({ length: perCall }, (_, i) => ({
            payload: makeOrder(first + i),
            delay: randomDelay(),
          })),
        );
      }
    });
  },

  /** Makes messages ready, to be taken. */
  async put(count: number): Promise<void> {
    await ready().putMany(Array.from({ length: count }, (_, i) => makeOrder(i)));
  },

  async takeMany(count: number, limit: number): Promise<number> {
    const queue = ready();
    return await perSecond(count, async () => {
      for (let taken = 0; taken < count;) taken += (await queue.takeMany({ limit })).length;
    });
  },

  /** Takes by `take`, in so many loops. */
  async takeConcurrently(count: number, loops: number): Promise<number> {
    const queue = ready();
    let begun = 0;
    const takeOn = async () => {
      while (begun < count) {
        begun++;
        await queue.take();
      }
    };
    return await perSecond(count, () => Promise.all(Array.from({ length: loops }, takeOn)));
  },

  /**
   * Offers messages that are all due at one instant, and returns that instant (epoch ms). This process then moves them.
   */
  async offerForOneInstant(count: number, inMilliseconds: number): Promise<number> {
    const queue = offers();
    const instant = Math.ceil(await line.serverTime()) + inMilliseconds;
    const date = new Date(instant);
    for (let first = 0; first < count; first += 1000) {
      const numbers = Array.from({ length: Math.min(1000, count - first) }, (_, i) => first + i);
      await Promise.all(numbers.map((number) => queue.offerAt(makeOrder(number), date)));
    }
    const left = instant - (await line.serverTime());
    if (left < 500) throw new Error(`the offers took too long: ${left} ms are left`);
    return instant;
  },

  async close(): Promise<void> {
    // Let the reply to the measured call go out first.
    await sleep(0);
    await line.close();
  },
};

/** The methods of the program. */
export type SingleMethods = typeof methods;

serve(methods);
