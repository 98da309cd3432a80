import { writeFile } from "node:fs/promises";
import { claims } from "./claims.ts";
import { acknowledged } from "./contests/acknowledged.ts";
import { burst } from "./contests/burst.ts";
import { cancel } from "./contests/cancel.ts";
import { lateness } from "./contests/lateness.ts";
import { memory } from "./contests/memory.ts";
import { offers } from "./contests/offers.ts";
import { delayed } from "./contests/delayed.ts";
import { resting } from "./contests/resting.ts";
import { start } from "./contests/start.ts";
import { workers } from "./contests/workers.ts";
import { summarize, type Figure, type Summary } from "./figure.ts";
import { LateStartError } from "./late-start.ts";
import type { Machine } from "./machine.ts";
import { contestTable, heading } from "./markdown.ts";
import { loadPeer, PEER_NAMES, type ByPeer, type PeerName } from "./peers/load.ts";
import { Progress } from "./progress.ts";
import { writeReport, type Origin } from "./report.ts";
import { table } from "./table.ts";
import type { Contest, ContestResult, ContestRound } from "./workload.ts";

export const CONTESTS: readonly Contest[] = [
  offers,
  lateness,
  burst,
  delayed,
  workers,
  cancel,
  memory,
  acknowledged,
  resting,
  start,
];

/** How to run a comparison. */
export interface ComparisonPlan {
  /** The contests to run; all of them if empty. */
  readonly names: readonly string[];
  readonly isQuick: boolean;
  readonly rounds: number;
  readonly machine: Machine;
  readonly origin: Origin;
  readonly jsonFile: string | undefined;
  readonly markdownFile: string | undefined;
  readonly plotDirectory: string | undefined;
}

/**
 * Runs every contest for every library. Within a round the libraries take turns, so that the machine's load affects all
 * of them; in every other round in the opposite order, so that none always follows the same one.
 */
export async function compare(plan: ComparisonPlan): Promise<void> {
  const peers = await forEachPeer(async (name) => {
    const { title, settings } = await loadPeer(name);
    return { title, settings };
  });
  const head = heading(peers, plan);
  console.log(`${head}\n`);
  const tables = [head];
  const results: ContestResult[] = [];
  const goals: Summary[] = [];
  for (const contest of CONTESTS) {
    if (plan.names.length > 0 && !plan.names.includes(contest.name)) continue;
    const rounds = await runRounds(contest, plan);
    const figures = await forEachPeer(async (name) =>
      summarize(rounds.map((round) => round[name])),
    );
    const result = { name: contest.name, title: contest.title, figures };
    results.push(result);
    tables.push(contestTable(result, peers));
    console.log(`${tables.at(-1)}\n`);
    goals.push(...summarize(rounds.map((round) => claims(contest.name, round))));

    // Written after each contest, so that a later error loses nothing.
    const { machine, isQuick, rounds: count } = plan;
    const report = { ...plan.origin, machine, isQuick, rounds: count, peers, results, goals };
    if (plan.jsonFile) await writeReport(plan.jsonFile, report);
    if (plan.markdownFile) await writeFile(plan.markdownFile, `${tables.join("\n\n")}\n`);
  }
  if (goals.length > 0) console.log(table({ name: "goals", title: "ratios, by round" }, goals));
  if (plan.plotDirectory === undefined) return;
  const { drawPlots } = await import("./plots.ts");
  for (const file of await drawPlots(results, peers, plan.plotDirectory)) console.log(file);
}

async function runRounds(contest: Contest, { isQuick, rounds }: ComparisonPlan) {
  const all: ByPeer<readonly Figure[]>[] = [];
  const progress = new Progress();
  for (let number = 1; number <= rounds; number++) {
    const order = number % 2 === 1 ? PEER_NAMES : PEER_NAMES.toReversed();
    const round = await forEachPeer((peer) => {
      const tell = (doing: string) =>
        progress.show(`${contest.name} ${number}/${rounds}, ${peer}: ${doing}`);
      return runPatiently(contest, { peer, isQuick, progress: tell });
    }, order);
    all.push(round);
  }
  progress.clear();
  return all;
}

/** Runs a contest, and repeats it with more patience if the machine was too slow. */
async function runPatiently(
  contest: Contest,
  round: Omit<ContestRound, "patience">,
): Promise<readonly Figure[]> {
  const { contests } = await loadPeer(round.peer);
  if (contests?.includes(contest.name) === false) return [];
  for (let patience = 1; ; patience *= 2) {
    try {
      return await contest.round({ ...round, patience });
    } catch (error) {
      if (!(error instanceof LateStartError) || patience > 4) throw error;
    }
  }
}

/** One after the other. */
async function forEachPeer<Values>(
  work: (name: PeerName) => Promise<Values>,
  order: readonly PeerName[] = PEER_NAMES,
): Promise<ByPeer<Values>> {
  const entries: (readonly [PeerName, Values])[] = [];
  for (const name of order) entries.push([name, await work(name)]);
  return Object.fromEntries(entries) as ByPeer<Values>;
}
