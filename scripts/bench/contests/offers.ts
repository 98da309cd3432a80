import { BenchServer } from "../bench-server.ts";
import type { Figure } from "../figure.ts";
import { Program } from "../program.ts";
import type { Offered } from "../deliveries.ts";
import type { ProducerMethods } from "../programs/producer.ts";
import type { Contest } from "../workload.ts";
import { LATER } from "./later.ts";

/** How fast one process offers messages that stay. */
export const offers: Contest = {
  name: "offers",
  title: "offers of one process, 100 B payloads, random deadlines",
  async round({ peer, isQuick, progress }) {
    const counts = isQuick ? [1000, 10_000, 20_000] : [5000, 50_000, 100_000];
    const [oneByOne = 0, inFlight = 0, inBulk = 0] = counts;
    await using server = await BenchServer.start();
    await using producer = await Program.start<ProducerMethods>("producer");
    await producer.call("open", peer, server.url);
    let first = 0;
    const figure = async (
      name: string,
      count: number,
      offer: (plan: { first: number; count: number; due: typeof LATER }) => Promise<Offered>,
    ): Promise<Figure> => {
      progress(`${count} ${name}`);
      let took = NaN;
      // First enough messages to get the functions compiled.
      for (const size of [Math.min(count, WARM_UP), count]) {
        const { duration } = await offer({ first, count: size, due: LATER });
        first += size;
        took = duration;
      }
      return { name, value: (count / took) * 1000, unit: "/s" };
    };
    return [
      await figure("one by one", oneByOne, (plan) => producer.call("offerBusily", plan, 1)),
      await figure("50 in flight", inFlight, (plan) => producer.call("offerBusily", plan, 50)),
      await figure("100 in flight", inFlight, (plan) => producer.call("offerBusily", plan, 100)),
      // The size that suits all libraries best: large calls wait for each other, small ones cost more.
      await figure("in bulk, 4 calls of 250 in flight", inBulk, (plan) =>
        producer.call("offerInBulk", plan, 250, 4),
      ),
    ];
  },
};

/** Unmeasured messages that come first. */
const WARM_UP = 10_000;
