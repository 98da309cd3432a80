import { deliver, type DeliveryResult } from "../delivery-run.ts";
import { percentile } from "../percentile.ts";
import type { Figure } from "../figure.ts";
import type { Contest } from "../workload.ts";

/** How much work do workers make for Redis, and for each other? */
export const workers: Contest = {
  name: "workers",
  title: "1,000 messages/s with delays of 1 to 2 s, by the number of worker clients",
  async round(round) {
    const { peer, isQuick, progress } = round;
    const count = isQuick ? 1500 : 5000;
    const figures: Figure[] = [];
    for (const clients of isQuick ? [1, 50] : [1, 10, 50]) {
      // More processes than that would measure how the system shares its processors out.
      const workerProcesses = Math.min(clients, isQuick ? 2 : 10);
      const { stats, processorTime, lateness } = await deliver(
        {
          peer,
          workerProcesses,
          clientsPerProcess: clients / workerProcesses,
          concurrency: 10,
          count,
          minDelay: 1000,
          maxDelay: isQuick ? 1500 : 2000,
          perSecond: 1000,
        },
        { ...round, progress: (doing) => progress(`${clients} clients: ${doing}`) },
      );
      const who = `${clients} client${clients === 1 ? "" : "s"}`;
      figures.push(
        {
          name: `Redis commands per message, ${who}`,
          value: stats.total / count,
          unit: "",
          parts: stats.perMessage(count),
          plot: { curve: "commands", x: clients },
        },
        {
          name: `Redis processor time per message, ${who}`,
          value: processorTime.total / count,
          unit: "us",
          parts: processorParts({ processorTime, stats }, count),
          plot: { curve: "processor time", x: clients },
        },
        { name: `lateness p99, ${who}`, value: percentile(lateness, 99), unit: "ms" },
      );
    }
    return figures;
  },
};

/** Scripts are a part of the user time. */
export function processorParts(
  { processorTime: { user, system }, stats }: Pick<DeliveryResult, "processorTime" | "stats">,
  count: number,
): Record<string, number> {
  return { user: user / count, system: system / count, scripts: stats.scriptTime / count };
}
