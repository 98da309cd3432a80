import { parseArgs } from "node:util";
import { BenchServer } from "./bench-server.ts";
import { compare, CONTESTS } from "./comparison.ts";
import { checkGoals, isNamed, WORKLOADS } from "./goal-run.ts";
import { describeMachine } from "./machine.ts";
import { describeOrigin, resultsFile } from "./report.ts";
import { putServerOnPath } from "../server/on-path.ts";
import type { Workload } from "./workload.ts";

/*
 * `npm run bench` compares Delayline with its own goals; `npm run bench -- compare` compares it with other libraries.
 */

const USAGE = `
npm run bench -- [name ...] [--quick] [--rounds N] [--json FILE] [--plots DIR]
    Delayline and its goals; "partitions" names all workloads about partitions.

${list(WORKLOADS)}

npm run bench -- compare [name ...] [--quick] [--rounds N]
                 [--json FILE] [--markdown FILE] [--plots DIR]
    Delayline, BullMQ, bee-queue and Redisson's algorithm on the same Redis, and Redisson itself if
    it has been built (npm run build:java).

${list(CONTESTS)}

  --quick          small numbers and one round
  --rounds N       3, or 1 with --quick
  --json FILE      writes the results to FILE; without --quick they are otherwise written to
                   docs/benchmarks/results/, with date and commit in the name
  --markdown FILE  also writes the tables to FILE
  --plots DIR      draws figures that grow, and where lateness comes from, as SVG
`.trim();

const { values: options, positionals } = readArguments();

const isComparison = positionals[0] === "compare";
const names = isComparison ? positionals.slice(1) : positionals;
const rounds = Number(options.rounds ?? (options.quick ? 1 : 3));
const problem = findProblem();

if (options.help) {
  console.log(USAGE);
} else if (problem !== undefined) {
  console.error(`${problem}\n\n${USAGE}`);
  process.exitCode = 2;
} else {
  const origin = describeOrigin();
  const kept = [isComparison ? "compare" : "goals", ...names].join("-");
  const jsonFile = options.json ?? (options.quick ? undefined : resultsFile(kept, origin));
  const plan = {
    names,
    origin,
    isQuick: options.quick,
    rounds,
    machine: await inspectMachine(),
    jsonFile,
    markdownFile: options.markdown,
    plotDirectory: options.plots,
  };
  await (isComparison ? compare(plan) : checkGoals(plan));
  if (jsonFile !== undefined) console.log(`The results are in ${jsonFile}.`);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        quick: { type: "boolean", default: false },
        rounds: { type: "string" },
        json: { type: "string" },
        markdown: { type: "string" },
        plots: { type: "string" },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    // An unknown option, or an option without its value.
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    return process.exit(2);
  }
}

function findProblem(): string | undefined {
  const known: readonly Pick<Workload, "name" | "group">[] = isComparison ? CONTESTS : WORKLOADS;
  const unknown = names.find((wanted) => !known.some((each) => isNamed(each, wanted)));
  if (unknown !== undefined) return `unknown name "${unknown}"`;
  if (!Number.isInteger(rounds) || rounds < 1) return "--rounds must be a whole number, at least 1";
  if (!isComparison && options.markdown !== undefined) return "--markdown needs compare";
  return undefined;
}

async function inspectMachine() {
  await putServerOnPath();
  await using server = await BenchServer.start();
  return describeMachine(server.description);
}

function list(all: readonly { readonly name: string; readonly title: string }[]): string {
  return all.map(({ name, title }) => `  ${name.padEnd(20)}${title}`).join("\n");
}
