import type { Redisson } from "../../../test/interop/redisson.ts";
import { RedissonProcess } from "../../../test/interop/redisson.ts";
import { NEWEST_REDISSON } from "../../../test/interop/java-build.ts";
import { makePayload } from "../payload.ts";
import type { Offered, Taken } from "../deliveries.ts";
import type { OfferPlan } from "../offer-plan.ts";
import {
  QUEUE,
  type ForeignProducer,
  type ForeignWorker,
  type Peer,
  type PeerProducer,
  type PeerWorker,
} from "./peer.ts";

/*
 * Redisson itself, in a Java process; see Bench.java. It skips two contests: cancelling, a search in the LIST, would
 * take hours, and its workers would be dozens of Java processes.
 */
export const redissonInJava: Peer = {
  title: "Redisson (Java)",
  settings:
    `${NEWEST_REDISSON}, StringCodec; one at a time by offer, more by offerAsync;` +
    " every taker is a thread; producers destroy their queue, so they move nothing",
  delayedKey: `redisson_delay_queue_timeout:{${QUEUE}}`,
  openProducer: notHere<PeerProducer>,
  openWorker: notHere<PeerWorker>,
  contests: ["offers", "lateness", "burst", "delayed", "memory"],
  foreign: {
    async openProducer(url) {
      const producer = new Producer(await Java.start(url, 32));
      await producer.stopMoving();
      return producer;
    },

    async openWorker(url, concurrency) {
      // One connection for each waiting call, and some for the transfers.
      const worker = new Worker(await Java.start(url, concurrency + 8));
      await worker.start(concurrency);
      return worker;
    },
  },
};

async function notHere<Client>(): Promise<Client> {
  throw new Error("Redisson runs in Java only");
}

/** A Java process with one Redisson client. */
class Java {
  readonly #process: RedissonProcess;
  readonly #redisson: Redisson;

  private constructor(process: RedissonProcess, redisson: Redisson) {
    this.#process = process;
    this.#redisson = redisson;
  }

  static async start(url: string, connections: number): Promise<Java> {
    // With Java's default settings.
    const process = await RedissonProcess.start(NEWEST_REDISSON, []);
    return new Java(process, await process.connect(url, connections));
  }

  async call<Reply>(method: string, request: object = {}): Promise<Reply> {
    return (await this.#redisson.bench(method, { queue: QUEUE, ...request })) as Reply;
  }

  close(): Promise<void> {
    return this.#process.kill();
  }
}

class Producer implements ForeignProducer {
  readonly #java: Java;

  constructor(java: Java) {
    this.#java = java;
  }

  /** Without this it would move messages as well. */
  async stopMoving(): Promise<void> {
    await this.#java.call("benchStopMoving");
  }

  offerSteadily(plan: OfferPlan, perSecond: number): Promise<Offered> {
    return this.#offer(plan, { inFlight: 1000, perSecond });
  }

  offerBusily(plan: OfferPlan, inFlight: number): Promise<Offered> {
    return this.#offer(plan, { inFlight });
  }

  /** Redisson has no call for many. */
  offerInBulk(plan: OfferPlan, perCall: number, inFlight = 1): Promise<Offered> {
    return this.#offer(plan, { inFlight: perCall * inFlight });
  }

  offerForIds(): Promise<boolean> {
    return notHere<boolean>();
  }

  cancelBusily(): Promise<number> {
    return notHere<number>();
  }

  close(): Promise<void> {
    return this.#java.close();
  }

  async #offer(
    { due, payloadBytes = 100, first, count }: OfferPlan,
    how: object,
  ): Promise<Offered> {
    // The payload without its leading number.
    const filler = makePayload(0, payloadBytes).slice(2);
    const plan = { first, count, ...due, payloadBytes, filler, ...how };
    const { deadlines, duration } = await this.#java.call<OfferedInJava>("benchOffer", plan);
    const instants = Float64Array.from(deadlines);
    return { deadlines: instants, notBefore: instants, duration };
  }
}

class Worker implements ForeignWorker {
  readonly #java: Java;

  constructor(java: Java) {
    this.#java = java;
  }

  async start(threads: number): Promise<void> {
    await this.#java.call("benchStartTaking", { threads });
  }

  count(): Promise<number> {
    return this.#java.call("benchCount");
  }

  async taken(): Promise<Taken> {
    const { numbers, takenAt } = await this.#java.call<TakenInJava>("benchTaken");
    const uncertainty = 0;
    return {
      numbers: Float64Array.from(numbers),
      takenAt: Float64Array.from(takenAt),
      processorTimes: [],
      uncertainty,
    };
  }

  async reset(): Promise<void> {
    await this.#java.call("benchReset");
  }

  close(): Promise<void> {
    return this.#java.close();
  }
}

interface OfferedInJava {
  readonly deadlines: readonly number[];
  readonly duration: number;
}

interface TakenInJava {
  readonly numbers: readonly number[];
  readonly takenAt: readonly number[];
}
