import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { Offered } from "../deliveries.ts";
import { eachOf } from "../each-of.ts";
import type { DueBetween, OfferPlan } from "../offer-plan.ts";
import { keyOf, makePayload } from "../payload.ts";
import { loadPeer, type PeerName } from "../peers/load.ts";
import type { CancelBy, Due, ForeignProducer, PeerMessage, PeerProducer } from "../peers/peer.ts";
import { ReferenceClock } from "../reference-clock.ts";
import { serve } from "./serve.ts";

/** Offers messages, and moves none: that is the workers' job. */
class Producer implements ForeignProducer {
  readonly #client: PeerProducer;
  readonly #clock: ReferenceClock;
  /** The ids of the messages that were offered for them, by their numbers. */
  readonly #ids = new Map<number, string>();

  constructor(client: PeerProducer, clock: ReferenceClock) {
    this.#client = client;
    this.#clock = clock;
  }

  /**
   * Offers a number of messages per second, evenly spread. Each is offered in a turn of the event loop of its own, as
   * separate requests would do, so that no two share a script.
   */
  offerSteadily(plan: OfferPlan, perSecond: number): Promise<Offered> {
    return this.#offer(plan, async (messages, note) => {
      const startedAt = performance.now();
      const underWay: Promise<void>[] = [];
      for (let i = 0; i < plan.count; i++) {
        const ahead = startedAt + (i * 1000) / perSecond - performance.now();
        await (ahead > 0 ? sleep(ahead) : setImmediate());
        underWay.push(this.#client.offer(messages(i)).then((deadline) => note(i, deadline)));
      }
      await Promise.all(underWay);
    });
  }

  /** Offers as fast as it can, with `inFlight` offers outstanding at any time. */
  offerBusily(plan: OfferPlan, inFlight: number): Promise<Offered> {
    return this.#offer(plan, async (messages, note) => {
      await eachOf(plan.count, inFlight, async (i) =>
        note(i, await this.#client.offer(messages(i))),
      );
    });
  }

  /** Offers so many messages per call, with so many calls outstanding at any time. */
  offerInBulk(plan: OfferPlan, perCall: number, inFlight = 1): Promise<Offered> {
    return this.#offer(plan, async (messages, note) => {
      await eachOf(Math.ceil(plan.count / perCall), inFlight, async (call) => {
        const first = call * perCall;
        const length = Math.min(perCall, plan.count - first);
        const bulk = Array.from({ length }, (_, i) => messages(first + i));
        const deadlines = await this.#client.offerMany(bulk);
        deadlines.forEach((deadline, i) => note(first + i, deadline));
      });
    });
  }

  /** Offers messages without keys, and keeps their ids. Returns whether the library makes any. */
  async offerForIds(plan: OfferPlan, perCall: number): Promise<boolean> {
    if (this.#client.offerForIds === undefined) return false;
    await this.#offer(plan, async (messages) => {
      for (let first = 0; first < plan.count; first += perCall) {
        const length = Math.min(perCall, plan.count - first);
        const bulk = Array.from({ length }, (_, i) => messages(first + i));
        const ids = await this.#client.offerForIds?.(bulk);
        ids?.forEach((id, i) => this.#ids.set(plan.first + first + i, id));
      }
    });
    return true;
  }

  /** Cancels messages in this order. Returns the duration in milliseconds. */
  async cancelBusily(
    numbers: readonly number[],
    inFlight: number,
    by: CancelBy = "key",
  ): Promise<number> {
    const names = numbers.map((number) => (by === "key" ? keyOf(number) : this.#ids.get(number)));
    const startedAt = performance.now();
    await eachOf(names.length, inFlight, async (i) => {
      await this.#client.cancel(names[i] as string);
    });
    return performance.now() - startedAt;
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  async #offer(
    { first, count, due, payloadBytes, isKeyed = false }: OfferPlan,
    offerAll: (
      message: (i: number) => PeerMessage,
      note: (i: number, deadline: number) => void,
    ) => Promise<void>,
  ): Promise<Offered> {
    const deadlines = new Float64Array(count);
    const notBefore = new Float64Array(count);
    const startedAt = performance.now();
    await offerAll(
      (i) => {
        const number = first + i;
        const chosen = choose(due);
        notBefore[i] =
          "delay" in chosen
            ? this.#clock.now() - this.#clock.uncertainty + chosen.delay
            : chosen.deadline;
        const payload = makePayload(number, payloadBytes);
        return { payload, due: chosen, ...(isKeyed && { key: keyOf(number) }) };
      },
      (i, deadline) => (deadlines[i] = deadline),
    );
    return { deadlines, notBefore, duration: performance.now() - startedAt };
  }
}

function choose(due: DueBetween): Due {
  return "from" in due
    ? { deadline: between(due.from, due.to) }
    : { delay: between(due.minDelay, due.maxDelay) };
}

function between(least: number, most: number): number {
  return least + Math.floor(Math.random() * (most - least + 1));
}

let producer: ForeignProducer;

const methods = {
  async open(peerName: PeerName, url: string): Promise<void> {
    const peer = await loadPeer(peerName);
    producer =
      (await peer.foreign?.openProducer(url)) ??
      new Producer(await peer.openProducer(url), await ReferenceClock.of(url));
  },
  offerSteadily: (plan: OfferPlan, perSecond: number) => producer.offerSteadily(plan, perSecond),
  offerBusily: (plan: OfferPlan, inFlight: number) => producer.offerBusily(plan, inFlight),
  offerInBulk: (plan: OfferPlan, perCall: number, inFlight = 1) =>
    producer.offerInBulk(plan, perCall, inFlight),
  offerForIds: (plan: OfferPlan, perCall: number) => producer.offerForIds(plan, perCall),
  cancelBusily: (numbers: readonly number[], inFlight: number, by?: CancelBy) =>
    producer.cancelBusily(numbers, inFlight, by),
  close: () => producer.close(),
};

/** The methods of the program. */
export type ProducerMethods = typeof methods;

serve(methods);
