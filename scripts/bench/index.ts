import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { BenchServer } from "./bench-server.ts";
import { summarize, type Figure } from "./figure.ts";
import { describeMachine } from "./machine.ts";
import { Progress } from "./progress.ts";
import { table } from "./table.ts";
import type { Workload } from "./workload.ts";
import { drain } from "./workloads/drain.ts";
import { growth } from "./workloads/growth.ts";
import { insertionOrder } from "./workloads/insertion-order.ts";
import { idle, lateness, workers } from "./workloads/lateness.ts";
import { mainJob } from "./workloads/main-job.ts";
import { memory } from "./workloads/memory.ts";
import { offers, takes } from "./workloads/throughput.ts";

/*
 * `npm run bench -- [name ...] [--quick] [--rounds N] [--json FILE]`
 *
 * Runs workloads, each several times on servers of its own, and prints the medians beside the goals.
 * A goal that is missed is shown, and is no failure: what the machine does meanwhile is in the
 * numbers too. Run it on a quiet one.
 */

const WORKLOADS: readonly Workload[] = [
  mainJob,
  lateness,
  workers,
  idle,
  growth,
  insertionOrder,
  memory,
  offers,
  takes,
  drain,
];

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

const rounds = Number(options.rounds ?? (options.quick ? 1 : 3));
const unknown = names.find((name) => !WORKLOADS.some((workload) => workload.name === name));

if (options.help) {
  console.log(usage());
} else if (unknown !== undefined || !Number.isInteger(rounds) || rounds < 1) {
  console.error(
    unknown === undefined ? "--rounds takes a whole number" : `no workload "${unknown}"`,
  );
  console.error(usage());
  process.exitCode = 2;
} else {
  await main();
}

async function main(): Promise<void> {
  const machine = await inspectMachine();
  const { processor, cores, node, redis, load, stall } = machine;
  console.log(`${processor}, ${cores} cores, Node ${node}, ${redis}`);
  console.log(
    `before: load ${load.toFixed(2)}, a busy process stood still for up to ${stall.toFixed(1)} ms`,
  );
  console.log(
    `${rounds} round(s)${options.quick ? ", small numbers (--quick)" : ""}; ! = goal of every round\n`,
  );
  const results = [];
  for (const workload of WORKLOADS) {
    if (names.length > 0 && !names.includes(workload.name)) continue;
    const figures = summarize(await runRounds(workload));
    console.log(`${table(workload, figures)}\n`);
    results.push({ name: workload.name, title: workload.title, figures });
    if (options.json === undefined) continue;
    // After each, so that an error later on takes nothing away.
    const report = { at: new Date(), machine, isQuick: options.quick, rounds, results };
    await writeFile(options.json, `${JSON.stringify(report, undefined, 2)}\n`);
  }
}

async function runRounds(workload: Workload): Promise<(readonly Figure[])[]> {
  const all: (readonly Figure[])[] = [];
  const progress = new Progress();
  for (let number = 1; number <= rounds; number++) {
    const tell = (doing: string) => progress.show(`${workload.name} ${number}/${rounds}: ${doing}`);
    all.push(await workload.round({ isQuick: options.quick, progress: tell }));
  }
  progress.clear();
  return all;
}

async function inspectMachine() {
  await using server = await BenchServer.start();
  return describeMachine(server.description);
}

function usage(): string {
  const list = WORKLOADS.map(({ name, title }) => `  ${name.padEnd(10)}${title}`);
  return [
    "npm run bench -- [name ...] [--quick] [--rounds N] [--json FILE]",
    "",
    ...list,
    "",
    "  --quick      small numbers and one round, in about a minute",
    "  --rounds N   3, or 1 with --quick",
    "  --json FILE  writes the results there too",
  ].join("\n");
}
