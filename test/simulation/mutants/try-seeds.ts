import { copyWith, type Copy } from "./copy.ts";
import type { Mutant } from "./mutant.ts";
import { runProgram } from "./program.ts";
import { WORLDS } from "../worlds/all.ts";

/** A run of the simulator that fails. */
interface Failed {
  readonly world: string;
  readonly seed: number;
  /** The first of its violations. */
  readonly violation: string;
}

/** What the simulator says of a mutant. */
export interface SeedVerdict {
  /** The first run that fails, and would not without the mutation; undefined if none did. */
  readonly caught: Failed | undefined;
  /** The last lines, if the simulator ended without a verdict. */
  readonly failure: string | undefined;
  /** Whether the time was over before that. */
  readonly isOutOfTime: boolean;
  readonly seconds: number;
}

/** How far to try. */
export interface Effort {
  /** The last seed; the first is 1. */
  readonly seeds: number;
  /** Milliseconds. */
  readonly limit: number;
}

/** Simulates the worlds of a mutant, seed after seed, until a run fails. */
export async function trySeeds(
  { edits, worlds: wanted }: Mutant,
  { seeds, limit }: Effort,
): Promise<SeedVerdict> {
  const worlds = wanted.filter((name) => WORLDS.some((world) => world.name === name));
  if (worlds.length === 0) {
    const failure = `there is no world "${wanted.join('", "')}"`;
    return { caught: undefined, failure, isOutOfTime: false, seconds: 0 };
  }
  await using copy = await copyWith(edits);
  const startedAt = performance.now();
  const spent = () => performance.now() - startedAt;
  let first = 1;
  let failure: string | undefined;
  while (first <= seeds && spent() < limit) {
    const tried = await simulate(copy, worlds, [first, seeds], limit - spent());
    const seconds = spent() / 1000;
    ({ failure } = tried);
    if (tried.failed === undefined) break;
    const { world, seed } = tried.failed;
    await using sound = await copyWith([]);
    const without = await simulate(sound, [world], [seed, seed], ONE_RUN);
    if (without.failed === undefined) {
      return { caught: tried.failed, failure: undefined, isOutOfTime: false, seconds };
    }
    first = seed + 1;
  }
  return { caught: undefined, failure, isOutOfTime: spent() >= limit, seconds: spent() / 1000 };
}

/** Simulates worlds until a run fails, the seeds are used up, or the time is over. */
async function simulate(
  { folder }: Copy,
  worlds: readonly string[],
  [first, last]: readonly [number, number],
  limit: number,
): Promise<{ readonly failed: Failed | undefined; readonly failure: string | undefined }> {
  let run: Omit<Failed, "violation"> | undefined;
  let failed: Failed | undefined;
  const lines: string[] = [];
  const { code, wasStopped } = await runProgram(
    folder,
    [
      "node_modules/.bin/tsx",
      "test/simulation/run.ts",
      "--world",
      worlds.join(","),
      "--seeds",
      `${first}-${last}`,
      "--workers",
      "1",
    ],
    limit,
    (line) => {
      lines.push(line);
      if (lines.length > 10) lines.shift();
      const [, world, seed] = /^(\S+), seed (\d+) fails:$/.exec(line) ?? [];
      if (world !== undefined) run = { world, seed: Number(seed) };
      else if (run !== undefined) failed ??= { ...run, violation: line.trim() };
      return failed !== undefined;
    },
  );
  const isDone = failed !== undefined || wasStopped || code === 0;
  return { failed, failure: isDone ? undefined : lines.join("\n") };
}

/** Milliseconds for one run. */
const ONE_RUN = 60_000;
