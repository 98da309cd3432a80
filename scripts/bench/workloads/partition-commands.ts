import type { Figure, Goal } from "../figure.ts";
import { percentile } from "../percentile.ts";
import { kindsOf, SentCommands } from "../sent-commands.ts";
import { Staff, type StaffPlan } from "../staff.ts";
import type { Round, Workload } from "../workload.ts";

/** The commands that three processes send for a message of a queue in partitions. */
export const partitionCommands: Workload = {
  name: "partition-commands",
  group: "partitions",
  title: "scripts and blocking calls sent per message, 500/s, 3 processes and a producer, 1 server",
  async round(round) {
    const figures: Figure[] = [];
    for (const kind of ["plain", "reliable"] as const) {
      for (const concurrency of [1, 10]) {
        for (const partitions of [8, undefined]) {
          const plan = { masters: 1, processes: 3, concurrency, kind, partitions };
          const goals: Goals =
            partitions === 8 && kind === "plain" ? { scriptsAndBlocks: { atMost: 4 } } : {};
          figures.push(...(await steadily(plan, 500, goals, round)));
        }
      }
    }
    return figures;
  },
};

/** The commands that many processes send for a message, on one server and on a Cluster. */
export const partitionCrowd: Workload = {
  name: "partition-crowd",
  group: "partitions",
  title:
    "scripts and blocking calls sent per message, 16 partitions, 20 clients in 4 processes, 200/s",
  async round(round) {
    const figures: Figure[] = [];
    for (const [masters, partitions] of [
      [1, 16],
      [4, 16],
      [1, undefined],
    ] as const) {
      const crew = { processes: 4, clientsPerProcess: 5, concurrency: 10, kind: "plain" } as const;
      const goals: Goals = partitions === 16 ? { scripts: { atMost: 3 } } : {};
      figures.push(...(await steadily({ ...crew, masters, partitions }, 200, goals, round)));
    }
    return figures;
  },
};

interface Goals {
  readonly scriptsAndBlocks?: Goal;
  readonly scripts?: Goal;
}

async function steadily(
  plan: StaffPlan,
  perSecond: number,
  goals: Goals,
  { isQuick, progress }: Round,
): Promise<Figure[]> {
  const { masters, partitions, kind, concurrency } = plan;
  const where = masters === 1 ? "" : `, ${masters} masters`;
  const what = partitions === undefined ? "ordinary" : `P = ${partitions}`;
  const of = `${kind}, ${what}${where}, concurrency ${concurrency}`;
  progress(of);
  const count = perSecond * (isQuick ? 4 : 20);
  await using staff = await Staff.start(plan);
  const commands = await SentCommands.start(staff.site);
  await staff.producer.call("offerSteadily", count, perSecond, 200, 1000);
  const { lateness } = await staff.handled(count);
  const sent = await commands.end();
  const { scripts, blocks, others } = kindsOf(sent);
  const parts = Object.fromEntries(Array.from(sent, ([name, times]) => [name, times / count]));
  return [
    {
      name: `${of}: both`,
      value: (scripts + blocks) / count,
      unit: "",
      parts,
      ...(goals.scriptsAndBlocks && { goal: goals.scriptsAndBlocks }),
    },
    {
      name: "  scripts",
      value: scripts / count,
      unit: "",
      ...(goals.scripts && { goal: goals.scripts }),
    },
    { name: "  blocks", value: blocks / count, unit: "" },
    { name: "  others", value: others / count, unit: "" },
    { name: "  lateness p50", value: percentile(lateness, 50), unit: "ms" },
    { name: "  lateness p99", value: percentile(lateness, 99), unit: "ms" },
  ];
}
