import type { Figure } from "../figure.ts";
import { percentile } from "../percentile.ts";
import { Staff } from "../staff.ts";
import type { Round, Workload } from "../workload.ts";

/**
 * Ten million messages delayed in partitions on a Cluster of three masters, and what a message costs as partitions and
 * clients become more: at one rate of the queue, and at one rate of each partition.
 */
export const tenMillionOnCluster: Workload = {
  name: "ten-million-cluster",
  title: "10,000,000 delayed in 12 partitions on 3 masters; costs by partitions and clients",
  quickTitle: "100,000 delayed in 12 partitions on 3 masters; costs by partitions and clients",
  async round(round) {
    const most = round.isQuick ? 100_000 : 10_000_000;
    const few = round.isQuick ? 5000 : 100_000;
    const figures: Figure[] = [];
    for (const [partitions, clients, count, perSecond] of [
      // One rate of each partition.
      [3, 4, few, 63],
      [12, 4, few, 250],
      [48, 4, few, 1000],
      // One rate of the queue.
      [3, 4, few, 1000],
      [12, 4, few, 1000],
      // More clients.
      [12, 1, few, 250],
      [12, 2, few, 250],
      [12, 8, few, 250],
      [12, 20, few, 250],
      // More messages.
      [12, 4, most, 1000],
    ] as const) {
      figures.push(...(await costs({ partitions, clients, count, perSecond }, round)));
    }
    return figures;
  },
};

interface Shape {
  readonly partitions: number;
  /** Clients that move and take, each with its own connections, in at most four processes. */
  readonly clients: number;
  /** How many messages are delayed. */
  readonly count: number;
  /** How many more are offered in a second. */
  readonly perSecond: number;
}

/** What a message costs that is offered, falls due and is taken. */
async function costs(
  { partitions, clients, count, perSecond }: Shape,
  { isQuick, progress }: Round,
): Promise<Figure[]> {
  const delayed = `${count.toLocaleString("en")} delayed`;
  const of = `P = ${partitions}, ${clients} client(s), ${delayed}, ${perSecond}/s`;
  progress(of);
  const processes = Math.min(clients, 4);
  const clientsPerProcess = clients / processes;
  const crew = { processes, clientsPerProcess, concurrency: 10, kind: "plain" } as const;
  await using staff = await Staff.start({ ...crew, masters: 3, partitions });
  const { site, producer } = staff;
  const filledAt = performance.now();
  await producer.call("offerInBulk", count, MONTH, 2 * MONTH);
  const rate = (count / (performance.now() - filledAt)) * 1000;
  await site.resetStats();
  const before = await site.processorTimes();
  const size = Math.max(1000, perSecond * (isQuick ? 2 : 20));
  const offeredAt = performance.now();
  await producer.call("offerSteadily", size, perSecond, 200, 1000);
  const offered = (size / (performance.now() - offeredAt)) * 1000;
  const { lateness } = await staff.handled(size);
  const stats = await site.stats();
  const after = await site.processorTimes();
  const each = after.map((time, i) => (time - (before[i] ?? NaN)) / size);
  const scripts = await Promise.all(site.servers.map((server) => server.scriptPercentile(99)));
  const memory = await Promise.all(site.servers.map((server) => server.usedMemory()));
  return [
    { name: `${of}: offered in bulk`, value: rate, unit: "/s" },
    {
      name: "  commands per message, with those of scripts",
      value: stats.total / size,
      unit: "",
      parts: stats.perMessage(size),
    },
    // A busy machine offers more slowly, so that fewer messages share a script.
    { name: "  offered one by one", value: offered, unit: "/s" },
    { name: "  processor time of all nodes", value: sum(each), unit: "us" },
    { name: "  of the busiest node", value: Math.max(...each), unit: "us" },
    { name: "  scripts, p99, worst node", value: Math.max(...scripts) / 1000, unit: "ms" },
    { name: "  memory of all nodes per message", value: sum(memory) / count, unit: "B" },
    { name: "  lateness, p50", value: percentile(lateness, 50), unit: "ms" },
    { name: "  lateness, p99", value: percentile(lateness, 99), unit: "ms" },
  ];
}

const sum = (values: readonly number[]): number => values.reduce((total, each) => total + each, 0);

const MONTH = 30 * 86_400_000;
