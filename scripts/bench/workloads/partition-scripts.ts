import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../figure.ts";
import { Program } from "../program.ts";
import type { MemberMethods } from "../programs/member.ts";
import { Site } from "../site.ts";
import { Staff } from "../staff.ts";
import type { Round, Workload } from "../workload.ts";

/** How long scripts take while few or many messages are delayed. */
export const partitionScripts: Workload = {
  name: "partition-scripts",
  group: "partitions",
  title: "scripts at 5,000 and 1,000,000 delayed, 8 partitions, 500/s fall due, 1 server",
  quickTitle: "scripts at 5,000 and 100,000 delayed, 8 partitions, 500/s fall due, 1 server",
  async round(round) {
    const figures = [];
    for (const count of [5000, round.isQuick ? 100_000 : 1_000_000]) {
      figures.push(...(await withDelayed(count, round)));
    }
    return figures;
  },
};

async function withDelayed(count: number, { isQuick, progress }: Round): Promise<Figure[]> {
  const of = `${count.toLocaleString("en")} delayed`;
  await using staff = await Staff.start({
    masters: 1,
    processes: 1,
    concurrency: 10,
    kind: "plain",
    partitions: 8,
  });
  const [server] = staff.site.servers;
  if (server === undefined) throw new Error("there is no server");
  progress(`offering ${of}`);
  await staff.producer.call("offerInBulk", count, HOUR, 2 * HOUR);
  progress(`${of}: offering others that fall due`);
  await server.resetStats();
  const moving = 500 * (isQuick ? 4 : 20);
  await staff.producer.call("offerSteadily", moving, 500, 200, 1000);
  await staff.handled(moving);
  return [
    {
      name: `${of}: scripts, p99`,
      value: (await server.scriptPercentile(99)) / 1000,
      unit: "ms",
      goal: { atMost: 2 },
    },
    {
      name: `${of}: scripts, p99.9`,
      value: (await server.scriptPercentile(99.9)) / 1000,
      unit: "ms",
    },
    { name: `${of}: longest script`, value: await server.longestScript(), unit: "ms" },
    {
      name: `${of}: script time per message`,
      value: (await server.stats()).scriptTime / moving,
      unit: "us",
    },
  ];
}

/** How fast messages move when the number of partitions changes. */
export const partitionChange: Workload = {
  name: "partition-change",
  group: "partitions",
  title: "from 2 to 8 partitions and on to 3, 100,000 delayed, nothing else to do, 1 server",
  async round({ progress }) {
    const count = 100_000;
    const starting = Program.start<MemberMethods>("member");
    await using site = await Site.start();
    await using changer = await starting;
    const [server] = site.servers;
    if (server === undefined) throw new Error("there is no server");
    await changer.call("open", { address: site.address, kind: "plain", partitions: 2 });
    progress(`offering ${count} messages`);
    await changer.call("offerInBulk", count, HOUR, 2 * HOUR);
    const figures: Figure[] = [];
    for (const [from, to] of [
      [2, 8],
      [8, 3],
    ] as const) {
      progress(`from ${from} to ${to}`);
      // Let the work of the last round end.
      await sleep(500);
      await server.resetStats();
      const before = await server.processorTime();
      const { moved, duration } = await changer.call("setPartitions", to);
      figures.push(
        { name: `${from} to ${to}: messages`, value: moved, unit: "" },
        {
          name: `${from} to ${to}: messages moved`,
          value: (moved / duration) * 1000,
          unit: "/s",
          goal: { atLeast: 30_000 },
        },
        {
          name: `${from} to ${to}: the server's time for each`,
          value: ((await server.processorTime()).total - before.total) / moved,
          unit: "us",
        },
        {
          name: `${from} to ${to}: scripts, p50`,
          value: (await server.scriptPercentile(50)) / 1000,
          unit: "ms",
        },
        {
          name: `${from} to ${to}: scripts, p99`,
          value: (await server.scriptPercentile(99)) / 1000,
          unit: "ms",
          goal: { atMost: 2 },
        },
        {
          name: `${from} to ${to}: longest script`,
          value: await server.longestScript(),
          unit: "ms",
        },
      );
    }
    await changer.call("close");
    return figures;
  },
};

const HOUR = 3_600_000;
