import { setTimeout as sleep } from "node:timers/promises";
import { BenchServer } from "../bench-server.ts";
import { Crew } from "../crew.ts";
import type { Figure } from "../figure.ts";
import { Meter } from "../meter.ts";
import { makePayload } from "../payload.ts";
import { loadPeer, type PeerName } from "../peers/load.ts";
import type { Contest } from "../workload.ts";

/** What do workers cost that wait for messages while none comes? */
export const resting: Contest = {
  name: "resting",
  title: "workers that wait while nothing happens",
  async round({ peer, isQuick, progress }) {
    progress("waiting");
    const figures = await Promise.all([1, 50].map((clients) => rest(peer, clients, isQuick)));
    return figures.flat();
  },
};

async function rest(peer: PeerName, clients: number, isQuick: boolean): Promise<Figure[]> {
  const who = `${clients} client${clients === 1 ? "" : "s"}`;
  const library = await loadPeer(peer);
  if (library.fill === undefined) return [];
  await using server = await BenchServer.start();
  await using crew = await Crew.start({
    workerProcesses: 1,
    clientsPerProcess: clients,
    concurrency: 10,
  });
  await crew.open(peer, server.url);
  await library.fill(
    server.url,
    Array.from({ length: clients }, (_, i) => makePayload(i)),
  );
  await crew.taken(clients);
  await sleep(SETTLED);
  const meter = await Meter.start(server);
  const seconds = isQuick ? 5 : 60;
  await sleep(seconds * 1000);
  const { stats, processorTime } = await meter.read();
  await crew.close();
  return [
    {
      name: `Redis commands per second, ${who}`,
      value: stats.total / seconds,
      unit: "",
      parts: stats.perMessage(seconds),
    },
    {
      name: `Redis processor time per second, ${who}`,
      value: processorTime.total / seconds,
      unit: "us",
    },
  ];
}

/** Milliseconds after which every library has settled. */
const SETTLED = 15_000;
