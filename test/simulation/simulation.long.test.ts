import { expect, test } from "vitest";
import type { Outcome } from "./machine/simulate.ts";
import { reportOf } from "./report.ts";
import { simulate, type Job } from "./workers.ts";
import { WORLDS } from "./worlds/all.ts";

/** The runs over all worlds. */
const RUNS = Number(process.env["SIMULATION_RUNS"] ?? 1000);

/** The first seed. A run that is to find something new begins elsewhere. */
const FIRST = Number(process.env["SIMULATION_FIRST"] ?? 1);

const TIMEOUT = 600_000 + RUNS * 500;

test("every seed keeps the promises", { timeout: TIMEOUT }, async () => {
  const outcomes = await simulate(jobs(RUNS, FIRST));
  const failed = outcomes.filter(fails);
  expect(failed.map((outcome) => reportOf(outcome))).toEqual([]);
});

test("a hundred seeds give the same runs again", { timeout: TIMEOUT }, async () => {
  const all = [...jobs(100, 1)];
  const [first, second] = [await simulate(all), await simulate(all.toReversed())];
  expect(hashes(second)).toEqual(hashes(first));
});

function* jobs(count: number, first: number): Generator<Job> {
  for (let i = 0; i < count; i++) {
    const { name } = WORLDS[i % WORLDS.length] as (typeof WORLDS)[number];
    yield { world: name, seed: first + Math.floor(i / WORLDS.length) };
  }
}

function hashes(outcomes: readonly Outcome[]): string[] {
  return outcomes.map(({ world, seed, hash }) => `${world} ${seed} ${hash}`).toSorted();
}

function fails({ violations }: Outcome): boolean {
  return violations.length > 0;
}
