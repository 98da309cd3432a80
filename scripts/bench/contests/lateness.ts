import { deliver } from "../delivery-run.ts";
import { latenessFigures, type Deliveries } from "../deliveries.ts";
import type { Figure } from "../figure.ts";
import { percentile } from "../percentile.ts";
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
      ...latenessFromCall(result),
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
    return [
      { name: "lost", value: result.lost, unit: "" },
      ...latenessFigures(result),
      ...latenessFromCall(result),
    ];
  },
};

/** From the call plus the delay. A library that counts from its producer's clock needs no trip to Redis for that. */
function latenessFromCall({ latenessFromCall: sorted }: Deliveries): Figure[] {
  return [50, 99].map((p) => ({
    name: `lateness from the call p${p}`,
    value: percentile(sorted, p),
    unit: "ms",
  }));
}
