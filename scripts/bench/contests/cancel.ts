import { BenchServer } from "../bench-server.ts";
import { loadPeer } from "../peers/load.ts";
import { Program } from "../program.ts";
import type { ProducerMethods } from "../programs/producer.ts";
import type { Contest } from "../workload.ts";
import { LATER } from "./later.ts";

/** Cancels messages by their business keys. */
export const cancel: Contest = {
  name: "cancel",
  title: "cancelling by key, in random order, 100 in flight",
  async round({ peer, isQuick, progress }) {
    const [size, count] = isQuick ? [10_000, 1000] : [50_000, 5000];
    const name = `cancelled, ${size.toLocaleString("en")} delayed`;
    await using server = await BenchServer.start();
    await using producer = await Program.start<ProducerMethods>("producer");
    await producer.call("open", peer, server.url);
    progress(`offering ${size} messages`);
    const plan = { first: 0, count: size, due: LATER, isKeyed: true };
    await producer.call("offerInBulk", plan, 1000);
    const { delayedKey } = await loadPeer(peer);
    progress(`cancelling ${count}`);
    const numbers = shuffled(size).slice(0, count);
    const duration = await producer.call("cancelBusily", numbers, 100);
    const { delayed } = await server.look(delayedKey);
    if (delayed !== size - count) throw new Error(`${delayed} are left of ${size - count}`);
    await producer.call("close");
    return [{ name, value: (count / duration) * 1000, unit: "/s" }];
  },
};

function shuffled(count: number): number[] {
  return Array.from({ length: count }, (_, number) => ({ number, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ number }) => number);
}
