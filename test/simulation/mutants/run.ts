/**
 * Shows that the simulator bites: breaks the source in one place after the other, each in a copy of its own, and simulates
 * until a run fails.
 *
 *   npx tsx test/simulation/mutants/run.ts                          # all mutants, seeds 1 to 1000
 *   npx tsx test/simulation/mutants/run.ts --only no-publish,no-kill
 *   npx tsx test/simulation/mutants/run.ts --tests                  # which of our tests catch them, instead
 *   npx tsx test/simulation/mutants/run.ts --json verdicts.jsonl    # goes on where the file ends
 *
 * It exits with code 1 if a mutant survives.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Mutant } from "./mutant.ts";
import { MUTANTS } from "./table.ts";
import { trySeeds } from "./try-seeds.ts";
import { tryTests } from "./try-tests.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    seeds: { type: "string", default: "1000" },
    minutes: { type: "string", default: "5" },
    "at-once": { type: "string", default: "2" },
    tests: { type: "boolean", default: false },
    json: { type: "string" },
  },
});

/** What came of a mutant, in a line. */
interface Verdict {
  readonly name: string;
  readonly isCaught: boolean;
  readonly text: string;
}

const names = values.only?.split(",");
const unknown = names?.filter((name) => !MUTANTS.some((mutant) => mutant.name === name)) ?? [];
if (unknown.length > 0) throw new RangeError(`there is no mutant "${unknown[0]}"`);
const done = new Map(earlier().map((verdict) => [verdict.name, verdict]));
const left = MUTANTS.filter(
  ({ name }) => !done.has(name) && (names?.includes(name) ?? true),
).values();

await Promise.all(Array.from({ length: Number(values["at-once"]) }, work));
const all = [...done.values()];
const survivors = all.filter(({ isCaught }) => !isCaught).map(({ name }) => name);
console.log(`${all.length - survivors.length} of ${all.length} mutants are caught.`);
if (survivors.length > 0) console.log(`Not caught: ${survivors.join(", ")}`);
process.exitCode = survivors.length > 0 ? 1 : 0;

async function work(): Promise<void> {
  for (const mutant of left) {
    const verdict = await (values.tests ? byTests(mutant) : bySeeds(mutant));
    done.set(verdict.name, verdict);
    console.log(`${verdict.name}: ${verdict.text}`);
    if (values.json !== undefined) appendFileSync(values.json, `${JSON.stringify(verdict)}\n`);
  }
}

async function bySeeds(mutant: Mutant): Promise<Verdict> {
  const effort = { seeds: Number(values.seeds), limit: Number(values.minutes) * 60_000 };
  const { caught, failure, isOutOfTime, seconds } = await trySeeds(mutant, effort);
  const time = `${seconds.toFixed(0)} s`;
  const text =
    caught !== undefined
      ? `${caught.world}, seed ${caught.seed}, ${time}: ${caught.violation}`
      : failure !== undefined
        ? `the simulator failed after ${time}: ${failure}`
        : `survived ${isOutOfTime ? "" : `${effort.seeds} seeds, `}${time}`;
  return { name: mutant.name, isCaught: caught !== undefined, text };
}

async function byTests(mutant: Mutant): Promise<Verdict> {
  const { failed, isDone, seconds } = await tryTests(mutant);
  const found = Array.from(failed, ([file, count]) => `${file} (${count})`);
  const tests = found.length > 0 ? found.join(", ") : "none found";
  const text = `${tests}${isDone ? "" : ", out of time"}, ${seconds.toFixed(0)} s`;
  return { name: mutant.name, isCaught: failed.size > 0, text };
}

/** The verdicts of a run that was ended. */
function earlier(): Verdict[] {
  if (values.json === undefined || !existsSync(values.json)) return [];
  const lines = readFileSync(values.json, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Verdict);
}
