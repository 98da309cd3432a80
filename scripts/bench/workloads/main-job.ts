import { deliver } from "../delivery-run.ts";
import { latenessFigures, promises } from "../deliveries.ts";
import type { Workload } from "../workload.ts";

/** The library's main job. */
export const mainJob: Workload = {
  name: "main",
  title: "10,000 orders with delays of 0 to 5 s, offered at once; 2 worker processes take them",
  quickTitle: "2,000 orders with delays of 0 to 1 s, offered at once; 2 worker processes take them",
  async round(round) {
    const count = round.isQuick ? 2000 : 10_000;
    const maxDelay = round.isQuick ? 1000 : 5000;
    const plan = { workerProcesses: 2, concurrency: 10, count, minDelay: 0, maxDelay };
    const result = await deliver(plan, round);
    return [...promises(result), ...latenessFigures(result)];
  },
};
