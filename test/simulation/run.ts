/**
 * Simulates worlds, each run by a seed.
 *
 *   npm run simulate                                     # all worlds, seeds 1 to 1000
 *   npm run simulate -- --world plain --seeds 1-100
 *   npm run simulate -- --world plain --seed 7 --trace   # one run, with all its events
 *   npm run simulate -- --world plain --seed 7 --shrink  # the smallest run that still fails
 *   npm run simulate -- --seeds 1-100 --twice            # the same seed gives the same run
 *   npm run simulate -- --seeds 1-10 --watched           # nothing moves between two events
 *
 * It starts its own Redis for each of two worker processes. It exits with code 1 if a run fails, and prints how to run
 * that again.
 */
import { parseArgs } from "node:util";
import type { Reduction } from "./machine/machine.ts";
import { Simulator } from "./machine/simulate.ts";
import { reportOf } from "./report.ts";
import { shrink } from "./shrink.ts";
import { Workers, type Job } from "./workers.ts";
import { worldNamed, WORLDS } from "./worlds/all.ts";

const { values } = parseArgs({
  options: {
    world: { type: "string" },
    seed: { type: "string" },
    seeds: { type: "string", default: "1-1000" },
    minutes: { type: "string" },
    trace: { type: "boolean", default: false },
    shrink: { type: "boolean", default: false },
    twice: { type: "boolean", default: false },
    watched: { type: "boolean", default: false },
    "keep-going": { type: "boolean", default: false },
    workers: { type: "string", default: "2" },
    faults: { type: "string" },
    without: { type: "string" },
    "orderly-from": { type: "string" },
  },
});

const worlds = values.world === undefined ? WORLDS : values.world.split(",").map(worldNamed);
process.exitCode = (await (values.seed === undefined ? runMany() : runOne(Number(values.seed))))
  ? 0
  : 1;

/** Returns whether all is well. */
async function runOne(seed: number): Promise<boolean> {
  const simulator = new Simulator();
  const print = values.trace ? (line: string) => console.log(line) : undefined;
  let isWell = true;
  try {
    for (const world of worlds) {
      let reduction = givenReduction();
      let outcome = await simulator.run(world, seed, reduction, values.shrink ? undefined : print);
      if (outcome.violations.length > 0 && values.shrink) {
        const tryOut = (less: Reduction) => simulator.run(world, seed, less);
        ({ reduction } = await shrink(outcome, tryOut));
        outcome = await simulator.run(world, seed, reduction, print);
      }
      console.log(`${world.name}, seed ${seed}: ${outcome.events} events, ${outcome.hash}`);
      if (outcome.violations.length > 0) console.log(reportOf(outcome, reduction));
      isWell &&= outcome.violations.length === 0;
    }
  } finally {
    await simulator.stop();
  }
  return isWell;
}

/** Returns whether all is well. */
async function runMany(): Promise<boolean> {
  const startedAt = performance.now();
  const endsAt = startedAt + Number(values.minutes ?? Infinity) * 60_000;
  const workers = new Workers(Number(values.workers));
  const hashes = new Map<string, string>();
  let isWell = true;
  let count = 0;
  let events = 0;
  const jobs = values.twice
    ? [...seedsAndWorlds(), ...[...seedsAndWorlds()].toReversed()]
    : seedsAndWorlds();
  try {
    await workers.run(jobs, (outcome) => {
      count++;
      events += outcome.events;
      const name = `${outcome.world}, seed ${outcome.seed}`;
      const earlier = hashes.get(name);
      if (values.twice) hashes.set(name, outcome.hash);
      if (earlier !== undefined && earlier !== outcome.hash) {
        console.log(`${name}: the same seed gives another run`);
        isWell = false;
      }
      if (outcome.violations.length > 0) {
        console.log(reportOf(outcome));
        isWell = false;
      }
      return performance.now() < endsAt && (isWell || values["keep-going"]);
    });
  } finally {
    await workers.close();
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const rate = (count / seconds).toFixed(1);
  const each = Math.round(events / Math.max(1, count));
  console.log(`${count} runs in ${seconds.toFixed(1)} s (${rate} a second), ${each} events each.`);
  return isWell;
}

function* seedsAndWorlds(): Generator<Job> {
  const reduction = givenReduction();
  const [first, last] = values.seeds.split("-").map(Number) as [number, number?];
  for (let seed = first; seed <= (last ?? first); seed++) {
    for (const { name } of worlds) yield { world: name, seed, reduction };
  }
}

function givenReduction(): Reduction {
  const { faults, without, "orderly-from": orderlyFrom } = values;
  return {
    ...(values.watched && { isWatched: true }),
    ...(faults !== undefined && { faults: numbers(faults) }),
    ...(without !== undefined && { without: numbers(without) }),
    ...(orderlyFrom !== undefined && { orderlyFrom: Number(orderlyFrom) }),
  };
}

function numbers(text: string): number[] {
  if (text === "none") return [];
  return text.split(",").flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number) as [number, number?];
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}
