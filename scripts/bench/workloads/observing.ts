import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { BenchServer } from "../bench-server.ts";
import type { Figure } from "../figure.ts";
import { median } from "../median.ts";
import { Program } from "../program.ts";
import type { Effort, ObservedMethods } from "../programs/observed.ts";
import type { Workload } from "../workload.ts";

type Observed = Program<ObservedMethods>;

/** The measured work. */
const WORKS: Readonly<Record<string, (program: Observed, count: number) => Promise<Effort>>> = {
  "offer, 100 in flight": (program, count) => program.call("offer", "plain", count, 100),
  "reliable offer, 100 in flight": (program, count) =>
    program.call("offer", "reliable", count, 100),
  "take, 50 loops": (program, count) => program.call("take", count, 50),
  "reliable handler, 50 at once": (program, count) => program.call("handle", count, 50),
};

/**
 * The cost of observing a process: without a listener, or with OpenTelemetry, which makes a span of everything. The
 * baseline is an older build that cannot be observed, in the directory `BENCH_BASELINE` (a work tree of the older
 * commit, built there), or otherwise this build without a listener.
 *
 * The builds take turns of one slice each, so that the machine's load affects all of them. It compares the processor
 * times within each turn, and reports the median of all turns.
 */
export const observing: Workload = {
  name: "observing",
  title: "cost of observing: off, and with OpenTelemetry, beside BENCH_BASELINE",
  async round({ isQuick, progress }) {
    const [turns, count] = isQuick ? [9, 4000] : [25, 10_000];
    const baseline = process.env["BENCH_BASELINE"];
    const library = baseline && pathToFileURL(resolve(baseline, "dist/index.js")).href;
    await using server = await BenchServer.start();
    await using off = await Program.start<ObservedMethods>("observed");
    await off.call("open", server.url, "off", undefined, false);
    await using on = await Program.start<ObservedMethods>("observed");
    await on.call("open", server.url, "on", undefined, true);
    await using older = await Program.start<ObservedMethods>("observed");
    await older.call("open", server.url, "older", library, false);
    const programs = [older, off, on] as const;

    const figures: Figure[] = [];
    for (const [work, run] of Object.entries(WORKS)) {
      progress(`${work}: warming up`);
      for (const program of programs) await run(program, WARM_UP);
      const efforts = programs.map((): Effort[] => []);
      for (let turn = 0; turn < turns; turn++) {
        progress(`${work}: ${turn + 1} of ${turns}`);
        for (let i = 0; i < programs.length; i++) {
          // A different one starts each turn.
          const which = (turn + i) % programs.length;
          efforts[which]?.push(await run(programs[which] as Observed, count));
        }
      }
      const [before = [], without = [], observed = []] = efforts;
      const cpu = median(before.map((effort) => (effort.cpu / count) * 1000));
      figures.push(
        { name: `${work}: processor time`, value: cpu, unit: "us" },
        { name: `${work}: off`, value: price(without, before), unit: "x", goal: { atMost: 1.01 } },
        { name: `${work}: on`, value: price(observed, before), unit: "x", goal: { atMost: 1.15 } },
      );
    }
    return figures;
  },
};

/** The cost of some turns as a multiple of the others' cost; the median of all turns. */
function price(efforts: readonly Effort[], others: readonly Effort[]): number {
  return median(efforts.map(({ cpu }, i) => cpu / (others[i]?.cpu ?? NaN)));
}

/** Unmeasured messages that come first, so that the program's functions are compiled. */
const WARM_UP = 20_000;
