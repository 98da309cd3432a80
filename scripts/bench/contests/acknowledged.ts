import { BenchServer } from "../bench-server.ts";
import { Crew } from "../crew.ts";
import { workerTimeOf } from "../deliveries.ts";
import { Meter } from "../meter.ts";
import { makePayload } from "../payload.ts";
import { loadPeer } from "../peers/load.ts";
import type { Contest } from "../workload.ts";

/** How fast does one worker handle ready messages, and what is it to acknowledge each one? */
export const acknowledged: Contest = {
  name: "acknowledged",
  title:
    "ready messages of 100 B, 1 worker with concurrency 200; all but Delayline's plain queue and Redisson acknowledge each",
  async round({ peer, isQuick, progress }) {
    const library = await loadPeer(peer);
    if (library.fill === undefined) return [];
    const count = WARM_UP + (isQuick ? 4000 : 100_000);
    await using server = await BenchServer.start();
    await using crew = await Crew.start({ workerProcesses: 1, concurrency: 200 });
    progress(`making ${count} ready`);
    for (let first = 0; first < count; first += 1000) {
      await library.fill(
        server.url,
        Array.from({ length: 1000 }, (_, i) => makePayload(first + i)),
      );
    }
    progress("handling them");
    const meter = await Meter.start(server);
    await crew.open(peer, server.url);
    const taken = await crew.taken(count);
    const { processorTime } = await meter.read();
    await crew.close();
    const takenAt = taken.flatMap((each) => [...each.takenAt]);
    const duration = (takenAt.at(-1) ?? NaN) - (takenAt[WARM_UP] ?? NaN);
    return [
      { name: "lost", value: count - takenAt.length, unit: "" },
      { name: "handled", value: ((count - WARM_UP) / duration) * 1000, unit: "/s" },
      {
        name: "worker's processor time per message",
        value: workerTimeOf(taken, WARM_UP),
        unit: "us",
      },
      {
        name: "Redis processor time per message",
        value: processorTime.total / count,
        unit: "us",
      },
    ];
  },
};

/** Unmeasured messages that come first, so that functions are compiled. */
const WARM_UP = 20_000;
