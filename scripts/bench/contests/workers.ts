import { deliverLater } from "../delivery-run.ts";
import { percentile } from "../percentile.ts";
import type { Figure } from "../figure.ts";
import type { Cost } from "../meter.ts";
import type { Contest } from "../workload.ts";

/** How much work do workers cause for Redis, and for each other? */
export const workers: Contest = {
  name: "workers",
  title: "1,000 messages/s falling due, offered before one by one, by the number of worker clients",
  async round(round) {
    const { peer, isQuick, progress } = round;
    const count = isQuick ? 1500 : 5000;
    const figures: Figure[] = [];
    for (const clients of isQuick ? [1, 50] : [1, 10, 50]) {
      // More processes would measure how the system shares its processors.
      const workerProcesses = Math.min(clients, isQuick ? 2 : 10);
      const { offering, delivering, lateness, lost } = await deliverLater(
        {
          peer,
          workerProcesses,
          clientsPerProcess: clients / workerProcesses,
          concurrency: 10,
          count,
          offersPerSecond: 2000,
          duePerSecond: 1000,
        },
        { ...round, progress: (doing) => progress(`${clients} clients: ${doing}`) },
      );
      const who = `${clients} client${clients === 1 ? "" : "s"}`;
      figures.push(
        ...costFigures("per offer", who, offering, count),
        ...costFigures("per message delivered", who, delivering, count).map((figure) => ({
          ...figure,
          plot: {
            curve: figure.unit === "us" ? "processor time" : "commands",
            x: clients,
          } as const,
        })),
        { name: `lateness p99, ${who}`, value: percentile(lateness, 99), unit: "ms" },
        { name: `lost, ${who}`, value: lost, unit: "" },
      );
    }
    return figures;
  },
};

function costFigures(of: string, who: string, cost: Cost, count: number): Figure[] {
  const { stats } = cost;
  return [
    {
      name: `Redis commands ${of}, ${who}`,
      value: stats.total / count,
      unit: "",
      parts: stats.perMessage(count),
    },
    {
      name: `Redis processor time ${of}, ${who}`,
      value: cost.processorTime.total / count,
      unit: "us",
      parts: processorParts(cost, count),
    },
  ];
}

/** Scripts are part of the user time. */
export function processorParts(
  { processorTime: { user, system }, stats }: Cost,
  count: number,
): Record<string, number> {
  return { user: user / count, system: system / count, scripts: stats.scriptTime / count };
}
