import type { Figure, Goal } from "../figure.ts";
import { Staff } from "../staff.ts";
import type { Round, Workload } from "../workload.ts";

/** The cost of a message to the busiest of four masters, and to the only server of an ordinary queue. */
export const partitionNodes: Workload = {
  name: "partition-nodes",
  group: "partitions",
  title: "processor time of the busiest server per message, 4 processes, concurrency 10",
  async round(round) {
    const figures: Figure[] = [];
    for (const pace of [1000, 4000, "in bulk"] as const) {
      for (const setup of [CLUSTER, ALONE]) figures.push(...(await busiest(setup, pace, round)));
    }
    return figures;
  },
};

interface Setup {
  readonly name: string;
  readonly masters: number;
  readonly partitions: number | undefined;
}

const CLUSTER: Setup = { name: "P = 16, 4 masters", masters: 4, partitions: 16 };
const ALONE: Setup = { name: "ordinary, 1 server", masters: 1, partitions: undefined };

async function busiest(
  { name, masters, partitions }: Setup,
  pace: number | "in bulk",
  { isQuick, progress }: Round,
): Promise<Figure[]> {
  const of = `${name}, ${pace === "in bulk" ? pace : `${pace.toLocaleString("en")}/s`}`;
  progress(of);
  const crew = { processes: 4, concurrency: 10, kind: "plain" } as const;
  await using staff = await Staff.start({ ...crew, masters, partitions });
  const { site, producer } = staff;
  await site.resetStats();
  const before = await site.processorTimes();
  const seconds = isQuick ? 3 : 15;
  const count = pace === "in bulk" ? (isQuick ? 20_000 : 100_000) : pace * seconds;
  if (pace === "in bulk") await producer.call("offerInBulk", count, 500, 5000);
  else await producer.call("offerSteadily", count, pace, 200, 1000);
  await staff.handled(count);
  const after = await site.processorTimes();
  const each = after.map((time, i) => (time - before[i]!) / count);
  const sent = (await site.statsOfEach()).map((stats) => stats.calls("evalsha"));
  const mean = sent.reduce((sum, calls) => sum + calls, 0) / sent.length;
  const shares = sent.map((calls) => (100 * calls) / mean - 100);
  const farthest = Math.max(...shares.map(Math.abs));
  const goal: Goal = { atMost: 10 };
  return [
    { name: of, value: Math.max(...each), unit: "us" },
    { name: "  all servers", value: each.reduce((sum, one) => sum + one, 0), unit: "us" },
    ...(masters === 1
      ? []
      : ([
          {
            name: "  scripts of a node, percent off the mean",
            value: farthest,
            unit: "",
            // Blocking calls depend on which process waits where, scripts on where the messages are.
            ...(masters > 1 && { goal }),
          },
        ] satisfies Figure[])),
  ];
}
