import { BenchServer } from "../bench-server.ts";
import { median } from "../median.ts";
import type { CancelBy } from "../peers/peer.ts";
import { loadPeer } from "../peers/load.ts";
import { Program } from "../program.ts";
import type { ProducerMethods } from "../programs/producer.ts";
import type { Contest } from "../workload.ts";
import { LATER } from "./later.ts";

/**
 * Cancels messages by their business keys, and by the ids that the library made. The two take turns in short spells, the
 * median of which counts: so a moment in which the machine was busy changes nothing.
 */
export const cancel: Contest = {
  name: "cancel",
  title: "cancelling by key and by id, in random order, 100 and 50 in flight",
  async round({ peer, isQuick, progress }) {
    const size = isQuick ? 10_000 : 50_000;
    const [spells, count] = isQuick ? [3, 300] : [9, 1000];
    await using server = await BenchServer.start();
    await using producer = await Program.start<ProducerMethods>("producer");
    await producer.call("open", peer, server.url);
    progress(`offering ${size} messages`);
    const half = size / 2;
    const plan = { count: half, due: LATER };
    await producer.call("offerInBulk", { ...plan, first: 0, isKeyed: true }, 1000);
    const hasIds = await producer.call("offerForIds", { ...plan, first: half }, 1000);
    const kinds: readonly CancelBy[] = hasIds ? ["key", "id"] : ["key"];
    const { delayedKey } = await loadPeer(peer);
    const { delayed: before } = await server.look(delayedKey);
    const numbers = { key: shuffled(0, half), id: shuffled(half, half) };
    const durations = new Map<string, number[]>();
    // The first spell compiles functions and is not counted.
    for (let spell = 0; spell <= spells; spell++) {
      progress(`cancelling, ${spell} of ${spells}`);
      for (const by of spell % 2 === 0 ? kinds : kinds.toReversed()) {
        for (const [i, inFlight] of IN_FLIGHT.entries()) {
          const from = (IN_FLIGHT.length * spell + i) * count;
          const some = numbers[by].slice(from, from + count);
          const duration = await producer.call("cancelBusily", some, inFlight, by);
          const name = nameOf(by, inFlight, size);
          if (spell > 0) durations.set(name, [...(durations.get(name) ?? []), duration]);
        }
      }
    }
    const { delayed } = await server.look(delayedKey);
    await producer.call("close");
    const cancelled = kinds.length * IN_FLIGHT.length * (spells + 1) * count;
    if (delayed !== before - cancelled) {
      throw new Error(`${delayed} are left of ${before}, of which ${cancelled} were cancelled`);
    }
    return IN_FLIGHT.flatMap((inFlight) =>
      kinds.map((by) => {
        const name = nameOf(by, inFlight, size);
        return { name, value: (count / median(durations.get(name) ?? [])) * 1000, unit: "/s" };
      }),
    );
  },
};

const IN_FLIGHT = [100, 50];

function nameOf(by: CancelBy, inFlight: number, size: number): string {
  const more = inFlight === 100 ? "" : `, ${inFlight} in flight`;
  return `cancelled by ${by}, ${size.toLocaleString("en")} delayed${more}`;
}

/** So many numbers from `first` on, in random order. */
function shuffled(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => ({ number: first + i, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ number }) => number);
}
