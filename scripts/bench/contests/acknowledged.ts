import { EventEmitter, once } from "node:events";
import { BenchServer, type ProcessorTime } from "../bench-server.ts";
import { makePayload } from "../payload.ts";
import { loadPeer } from "../peers/load.ts";
import type { Acknowledging } from "../peers/peer.ts";
import type { Contest } from "../workload.ts";

/** How fast does one worker handle ready messages if it acknowledges each one? */
export const acknowledged: Contest = {
  name: "acknowledged",
  title: "ready messages of 100 B, 1 worker with concurrency 200, each acknowledged",
  async round({ peer, isQuick, progress }) {
    const { acknowledging } = await loadPeer(peer);
    if (acknowledging === undefined) return [];
    const count = isQuick ? 4000 : 40_000;
    await using server = await BenchServer.start();
    progress(`making ${WARM_UP + count} ready`);
    for (let first = 0; first < WARM_UP + count; first += 1000) {
      const payloads = Array.from({ length: 1000 }, (_, i) => makePayload(first + i));
      await acknowledging.fill(server.url, payloads);
    }
    progress("handling them");
    const { duration, processorTime } = await handleAll(acknowledging, server, count);
    return [
      { name: "handled", value: (count / duration) * 1000, unit: "/s" },
      {
        name: "Redis processor time per message",
        value: processorTime / count,
        unit: "us",
      },
    ];
  },
};

/** Handles all messages. Returns the duration of the measured ones, and the server's processor time for them. */
async function handleAll(
  acknowledging: Acknowledging,
  server: BenchServer,
  count: number,
): Promise<{ duration: number; processorTime: number }> {
  let handled = 0;
  let startedAt = NaN;
  let before: Promise<ProcessorTime> | undefined;
  const progress = new EventEmitter();
  const finished = once(progress, "finished");
  const worker = await acknowledging.openWorker(server.url, 200, () => {
    handled++;
    if (handled === WARM_UP) {
      startedAt = performance.now();
      before = server.processorTime();
    }
    if (handled === WARM_UP + count) progress.emit("finished");
  });
  await finished;
  const duration = performance.now() - startedAt;
  const after = await server.processorTime();
  await worker.close();
  return { duration, processorTime: after.total - ((await before)?.total ?? NaN) };
}

/** Unmeasured messages that come first, so that functions are compiled. */
const WARM_UP = 4000;
