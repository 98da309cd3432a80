import { deliver } from "../delivery-run.ts";
import { latenessFigures } from "../deliveries.ts";
import type { Contest } from "../workload.ts";
import { processorParts } from "./workers.ts";

/** One worker under a steady load. */
export const lateness: Contest = {
  name: "lateness",
  title: "2,000 messages/s with delays of 1 to 3 s, 1 worker",
  async round(round) {
    const count = 2000 * (round.isQuick ? 2 : 8);
    const result = await deliver(
      {
        peer: round.peer,
        workerProcesses: 1,
        concurrency: 50,
        count,
        minDelay: 1000,
        maxDelay: round.isQuick ? 2000 : 3000,
        perSecond: 2000,
      },
      round,
    );
    return [
      { name: "lost", value: result.lost, unit: "" },
      ...latenessFigures(result),
      {
        name: "Redis processor time per message",
        value: result.processorTime.total / count,
        unit: "us",
        parts: processorParts(result, count),
      },
      { name: "worker's processor time per message", value: result.workerTime, unit: "us" },
    ];
  },
};

/** One message now and then: nothing else wakes any client. */
export const idle: Contest = {
  name: "idle",
  title: "1 message every 50 ms, delays of 0.2 to 1 s, 1 worker",
  async round(round) {
    const result = await deliver(
      {
        peer: round.peer,
        workerProcesses: 1,
        concurrency: 50,
        count: round.isQuick ? 30 : 200,
        minDelay: 200,
        maxDelay: 1000,
        perSecond: 20,
      },
      round,
    );
    return [{ name: "lost", value: result.lost, unit: "" }, ...latenessFigures(result)];
  },
};
