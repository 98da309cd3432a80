import { BenchServer } from "../bench-server.ts";
import { makePayload } from "../payload.ts";
import { loadPeer } from "../peers/load.ts";
import type { Contest } from "../workload.ts";

/** How fast does one worker handle what is ready, where each message is acknowledged? */
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
    let close = async (): Promise<unknown> => undefined;
    let handled = 0;
    let startedAt = NaN;
    let processorTime = NaN;
    const duration = await new Promise<number>((resolve, reject) => {
      const onMessage = (): void => {
        handled++;
        if (handled === WARM_UP) {
          startedAt = performance.now();
          server.processorTime().then(({ total }) => (processorTime = total), reject);
        }
        if (handled === WARM_UP + count) resolve(performance.now() - startedAt);
      };
      acknowledging.openWorker(server.url, 200, onMessage).then((worker) => {
        close = () => worker.close();
      }, reject);
    });
    const { total } = await server.processorTime();
    await close();
    return [
      { name: "handled", value: (count / duration) * 1000, unit: "/s" },
      {
        name: "Redis processor time per message",
        value: (total - processorTime) / count,
        unit: "us",
      },
    ];
  },
};

/** Messages before the measured ones, until functions are compiled. */
const WARM_UP = 4000;
