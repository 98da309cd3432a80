import type { Figure } from "../figure.ts";
import { percentile } from "../percentile.ts";
import { Staff } from "../staff.ts";
import type { Round, Workload } from "../workload.ts";

/**
 * Ten million messages delayed in partitions on a Cluster of three masters, and what a message costs as partitions and
 * processes become more: at one rate of the queue, and at one rate of each partition.
 */
export const tenMillionOnCluster: Workload = {
  name: "ten-million-cluster",
  title: "10,000,000 delayed in 12 partitions on 3 masters; costs by partitions and processes",
  quickTitle: "100,000 delayed in 12 partitions on 3 masters; costs by partitions and processes",
  async round(round) {
    const most = round.isQuick ? 100_000 : 10_000_000;
    const few = round.isQuick ? 5000 : 100_000;
    const figures: Figure[] = [];
    for (const [partitions, processes, count, perSecond] of [
      [3, 4, few, 1000],
      [12, 1, few, 1000],
      [12, 4, few, 1000],
      [12, 4, most, 1000],
      [12, 12, few, 1000],
      [48, 4, few, 1000],
      [12, 4, few, 250],
      [3, 4, few, 63],
    ] as const) {
      figures.push(...(await costs({ partitions, processes, count, perSecond }, round)));
    }
    return figures;
  },
};

interface Shape {
  readonly partitions: number;
  readonly processes: number;
  /** How many messages are delayed. */
  readonly count: number;
  /** How many more are offered in a second. */
  readonly perSecond: number;
}

/** What a message costs that is offered, falls due and is taken. */
async function costs(
  { partitions, processes, count, perSecond }: Shape,
  { isQuick, progress }: Round,
): Promise<Figure[]> {
  const delayed = `${count.toLocaleString("en")} delayed`;
  const of = `P = ${partitions}, ${processes} process(es), ${delayed}, ${perSecond}/s`;
  progress(of);
  const crew = { processes, concurrency: 10, kind: "plain" } as const;
  await using staff = await Staff.start({ ...crew, masters: 3, partitions });
  const { site, producer } = staff;
  const filledAt = performance.now();
  await producer.call("offerInBulk", count, MONTH, 2 * MONTH);
  const rate = (count / (performance.now() - filledAt)) * 1000;
  await site.resetStats();
  const before = await site.processorTimes();
  const size = perSecond * (isQuick ? 2 : 20);
  await producer.call("offerSteadily", size, perSecond, 200, 1000);
  const { lateness } = await staff.handled(size);
  const commands = (await site.stats()).total;
  const after = await site.processorTimes();
  const each = after.map((time, i) => (time - (before[i] ?? NaN)) / size);
  const scripts = await Promise.all(site.servers.map((server) => server.scriptPercentile(99)));
  const memory = await Promise.all(site.servers.map((server) => server.usedMemory()));
  return [
    { name: `${of}: offered in bulk`, value: rate, unit: "/s" },
    { name: "  commands per message, with those of scripts", value: commands / size, unit: "" },
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
