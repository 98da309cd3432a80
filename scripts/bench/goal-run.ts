import { summarize, type Figure } from "./figure.ts";
import type { Machine } from "./machine.ts";
import { Progress } from "./progress.ts";
import { writeReport, type Origin } from "./report.ts";
import { table } from "./table.ts";
import type { Workload } from "./workload.ts";
import { alone } from "./workloads/alone.ts";
import { budget } from "./workloads/budget.ts";
import { drain } from "./workloads/drain.ts";
import { exactOrder } from "./workloads/exact-order.ts";
import { growth } from "./workloads/growth.ts";
import { insertionOrder } from "./workloads/insertion-order.ts";
import { keyMemory, keys } from "./workloads/keys.ts";
import { oneOffer } from "./workloads/one-offer.ts";
import { idle, lateness, workers } from "./workloads/lateness.ts";
import { mainJob } from "./workloads/main-job.ts";
import { memory } from "./workloads/memory.ts";
import { observing } from "./workloads/observing.ts";
import { partitionCommands, partitionCrowd } from "./workloads/partition-commands.ts";
import { partitionHandover } from "./workloads/partition-handover.ts";
import { partitionIdle } from "./workloads/partition-idle.ts";
import { partitionNodes } from "./workloads/partition-nodes.ts";
import { partitionPrice } from "./workloads/partition-price.ts";
import { partitionChange, partitionScripts } from "./workloads/partition-scripts.ts";
import { reliable } from "./workloads/reliable.ts";
import { tenMillion } from "./workloads/ten-million.ts";
import { tenMillionOnCluster } from "./workloads/ten-million-cluster.ts";
import { offers, takes } from "./workloads/throughput.ts";

export const WORKLOADS: readonly Workload[] = [
  mainJob,
  lateness,
  workers,
  idle,
  alone,
  budget,
  growth,
  insertionOrder,
  exactOrder,
  keys,
  oneOffer,
  keyMemory,
  memory,
  offers,
  takes,
  drain,
  reliable,
  observing,
  partitionCommands,
  partitionCrowd,
  partitionIdle,
  partitionScripts,
  partitionChange,
  partitionHandover,
  partitionNodes,
  partitionPrice,
  tenMillion,
  tenMillionOnCluster,
];

export interface GoalPlan {
  /** The workloads to run; all of them if empty. */
  readonly names: readonly string[];
  readonly isQuick: boolean;
  readonly rounds: number;
  readonly machine: Machine;
  readonly origin: Origin;
  readonly jsonFile: string | undefined;
  readonly plotDirectory: string | undefined;
}

/**
 * Runs Delayline's workloads, each several times on fresh servers, and prints the medians beside the goals.
 *
 * A missed goal is shown but is not a failure, since the machine's load affects the numbers. Run it on a quiet machine.
 */
export async function checkGoals(plan: GoalPlan): Promise<void> {
  const { names, isQuick, rounds, machine, jsonFile } = plan;
  const { processor, cores, node, redis, load, stall } = machine;
  console.log(`${processor}, ${cores} cores, Node ${node}, ${redis}`);
  console.log(
    `before: load ${load.toFixed(2)}, a busy process stood still for up to ${stall.toFixed(1)} ms`,
  );
  console.log(
    `${rounds} round(s)${isQuick ? ", small numbers (--quick)" : ""}; ! = goal of every round\n`,
  );
  const results = [];
  for (const workload of WORKLOADS) {
    if (names.length > 0 && !names.some((name) => isNamed(workload, name))) continue;
    const figures = summarize(await runRounds(workload, plan));
    const { name } = workload;
    const title = isQuick ? (workload.quickTitle ?? workload.title) : workload.title;
    console.log(`${table({ name, title }, figures)}\n`);
    results.push({ name, title, figures });
    if (jsonFile === undefined) continue;
    // Written after each workload, so that a later error loses nothing.
    await writeReport(jsonFile, { ...plan.origin, machine, isQuick, rounds, results });
  }
  if (plan.plotDirectory === undefined) return;
  const { drawStages } = await import("./plots.ts");
  const measured = results.flatMap(({ figures }) => figures);
  for (const file of await drawStages(measured, plan.plotDirectory)) console.log(file);
}

/** Whether this is the name of a workload or of its group. */
export function isNamed(
  { name, group }: Pick<Workload, "name" | "group">,
  wanted: string,
): boolean {
  return wanted === name || wanted === group;
}

async function runRounds(
  workload: Workload,
  { isQuick, rounds }: GoalPlan,
): Promise<(readonly Figure[])[]> {
  const all: (readonly Figure[])[] = [];
  const progress = new Progress();
  for (let number = 1; number <= rounds; number++) {
    const show = (doing: string) => progress.show(`${workload.name} ${number}/${rounds}: ${doing}`);
    all.push(await workload.round({ isQuick, progress: show }));
  }
  progress.clear();
  return all;
}
