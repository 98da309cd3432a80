import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Figure } from "../figure.ts";
import { SentCommands } from "../sent-commands.ts";
import { Staff } from "../staff.ts";
import type { Round, Workload } from "../workload.ts";

/**
 * Whether the ordinary queue pays for partitions: this build compared with an older one, in the directory
 * `BENCH_BASELINE` (a work tree of the older commit, built there).
 */
export const partitionPrice: Workload = {
  name: "partition-price",
  group: "partitions",
  title: "the ordinary queue, this build and the one in BENCH_BASELINE, 500/s, 3 processes",
  async round(round) {
    const baseline = process.env["BENCH_BASELINE"];
    const figures = [];
    for (const kind of ["plain", "reliable"] as const) {
      figures.push(...(await steadily(`${kind}, this build`, kind, undefined, round)));
      const library = baseline && pathToFileURL(resolve(baseline, "dist/index.js")).href;
      const measured = library && (await steadily(`${kind}, baseline`, kind, library, round));
      if (measured) figures.push(...measured);
    }
    return figures;
  },
};

async function steadily(
  of: string,
  kind: "plain" | "reliable",
  library: string | undefined,
  { isQuick, progress }: Round,
): Promise<Figure[]> {
  progress(of);
  const plan = { masters: 1, processes: 3, concurrency: 10, kind, library } as const;
  await using staff = await Staff.start(plan);
  const count = 500 * (isQuick ? 4 : 20);
  const commands = await SentCommands.start(staff.site);
  await staff.producer.call("offerSteadily", count, 500, 200, 1000);
  await staff.handled(count);
  const stats = await staff.site.stats();
  const sent = await commands.end();
  const parts = Object.fromEntries(Array.from(sent, ([name, times]) => [name, times / count]));
  const total = Object.values(parts).reduce((sum, one) => sum + one, 0);
  return [
    { name: `${of}: commands sent per message`, value: total, unit: "", parts },
    { name: `${of}: commands run, also by scripts`, value: stats.total / count, unit: "" },
    { name: `${of}: script time per message`, value: stats.scriptTime / count, unit: "us" },
  ];
}
