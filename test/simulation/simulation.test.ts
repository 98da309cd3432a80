import { expect, test } from "vitest";
import type { Outcome } from "./machine/simulate.ts";
import { reportOf } from "./report.ts";
import { shrink } from "./shrink.ts";
import { simulate } from "./workers.ts";
import { WORLDS } from "./worlds/all.ts";

test("the same seed gives the same run, whatever ran before it", async () => {
  // One seed of each world. The long test runs hundreds.
  const jobs = WORLDS.map(({ name }, i) => ({ world: name, seed: i + 1 }));
  const outcomes = await simulate([...jobs, ...jobs.toReversed()]);
  expect(outcomes.filter(fails).map((outcome) => reportOf(outcome))).toEqual([]);
  for (const { world, seed } of jobs) {
    const runs = outcomes.filter((one) => one.world === world && one.seed === seed);
    expect(runs.map(({ hash }) => hash)).toEqual([runs[0]?.hash, runs[0]?.hash]);
  }
  expect(new Set(outcomes.map(({ hash }) => hash)).size).toBe(jobs.length);
});

test("nothing moves between two events", async () => {
  const outcomes = await simulate([{ world: "smoke", seed: 1, reduction: { isWatched: true } }]);
  expect(outcomes.filter(fails).map((outcome) => reportOf(outcome))).toEqual([]);
});

test("a failure shrinks to the faults, the operations and the disorder that it needs", async () => {
  const failure: Outcome = {
    world: "made-up",
    seed: 7,
    violations: ["lost"],
    hash: "",
    events: 500,
    elapsed: 1000,
    faultCount: 6,
    operationCount: 40,
    tail: [],
  };
  const { reduction, outcome } = await shrink(
    failure,
    async ({ faults = [], without = [], orderlyFrom = Infinity }) => {
      const isFailing =
        faults.includes(4) && ![11, 30].some((n) => without.includes(n)) && orderlyFrom >= 123;
      return { ...failure, violations: isFailing ? ["lost"] : [] };
    },
  );
  expect(reportOf(outcome, reduction)).toContain(
    "--world made-up --seed 7 --faults 4 --without 0-10,12-29,31-39 --orderly-from 123 --trace",
  );
});

function fails({ violations }: Outcome): boolean {
  return violations.length > 0;
}
