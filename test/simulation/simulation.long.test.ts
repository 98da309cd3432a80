import { expect, test } from "vitest";
import type { Outcome } from "./machine/simulate.ts";
import { reportOf } from "./report.ts";
import { simulate, type Job } from "./workers.ts";
import { WORLDS } from "./worlds/all.ts";

/** The runs over all worlds. */
const RUNS = Number(process.env["SIMULATION_RUNS"] ?? 150);

/** How many of them are done a second time, in reverse order. */
const AGAIN = 30;

/** The first seed. A run that is to find something new begins elsewhere. */
const FIRST = Number(process.env["SIMULATION_FIRST"] ?? 1);

const TIMEOUT = 600_000 + RUNS * 500;

test(
  "every seed keeps the promises, and gives the same run again",
  { timeout: TIMEOUT },
  async () => {
    const all = [...jobs(RUNS, FIRST)];
    const again = all.slice(-AGAIN).toReversed();
    const outcomes = await simulate([...all, ...again]);
    expect(outcomes.filter(fails).map((outcome) => reportOf(outcome))).toEqual([]);
    const runs = new Set(outcomes.map(({ world, seed, hash }) => `${world} ${seed} ${hash}`));
    expect(runs.size).toBe(all.length);
  },
);

/** Round after round over the worlds. */
function* jobs(count: number, first: number): Generator<Job> {
  let left = count;
  for (let round = 0; ; round++) {
    for (const { name, every = 1 } of WORLDS) {
      if (round % every > 0) continue;
      if (left-- === 0) return;
      yield { world: name, seed: first + round / every };
    }
  }
}

function fails({ violations }: Outcome): boolean {
  return violations.length > 0;
}
