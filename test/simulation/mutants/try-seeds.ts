import { copyWith } from "./copy.ts";
import type { Mutant } from "./mutant.ts";
import { runProgram } from "./program.ts";

/** What the simulator says of a mutant. */
export interface SeedVerdict {
  /** The first run that fails; undefined if none did. */
  readonly caught:
    { readonly world: string; readonly seed: number; readonly violation: string } | undefined;
  /** The last lines, if the simulator ended without a verdict. */
  readonly failure: string | undefined;
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
  { edits, worlds }: Mutant,
  { seeds, limit }: Effort,
): Promise<SeedVerdict> {
  await using copy = await copyWith(edits);
  let world: string | undefined;
  let seed = 0;
  let caught: SeedVerdict["caught"];
  const last: string[] = [];
  const { code, wasStopped, seconds } = await runProgram(
    copy.folder,
    [
      "node_modules/.bin/tsx",
      "test/simulation/run.ts",
      "--world",
      worlds.join(","),
      "--seeds",
      `1-${seeds}`,
      "--workers",
      "1",
    ],
    limit,
    (line) => {
      last.push(line);
      if (last.length > 10) last.shift();
      const [, failed, number] = /^(\S+), seed (\d+) fails:$/.exec(line) ?? [];
      if (failed !== undefined) [world, seed] = [failed, Number(number)];
      else if (world !== undefined) caught ??= { world, seed, violation: line.trim() };
      return caught !== undefined;
    },
  );
  const isDone = caught !== undefined || wasStopped || code === 0;
  return { caught, failure: isDone ? undefined : last.join("\n"), seconds };
}
