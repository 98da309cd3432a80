import { existsSync } from "node:fs";
import { join } from "node:path";
import { copyWith } from "./copy.ts";
import type { Mutant } from "./mutant.ts";
import { runProgram } from "./program.ts";

/** Which tests of its room catch a mutant. */
export interface TestVerdict {
  /** The files with failed tests, each with how many have failed. */
  readonly failed: ReadonlyMap<string, number>;
  /** Whether the tests were done in time. */
  readonly isDone: boolean;
  readonly seconds: number;
}

/** Runs the tests of a mutant's room against it. */
export async function tryTests({ edits, tests }: Mutant, limit = LIMIT): Promise<TestVerdict> {
  await using copy = await copyWith(edits);
  const failed = new Map<string, number>();
  const files = tests
    .map((test) => join("test", test))
    .filter((file) => existsSync(join(copy.folder, file)));
  const args = ["run", "--config", "test/vitest.config.ts", "--reporter=verbose"];
  const limits = [`--testTimeout=${TEST_LIMIT}`, `--hookTimeout=${TEST_LIMIT}`];
  const ended = await runProgram(
    copy.folder,
    ["node_modules/.bin/vitest", ...args, ...limits, ...files],
    limit,
    (line) => {
      const [, file] = /^\s*(?:×|FAIL)\s+(?:\|?\w+\|?\s+)?test\/(\S+\.test\.ts)/.exec(line) ?? [];
      if (file === undefined || line.includes("FAIL")) return;
      failed.set(file, (failed.get(file) ?? 0) + 1);
    },
  );
  return { failed, isDone: !ended.wasStopped, seconds: ended.seconds };
}

/** Milliseconds for all tests of a mutant. */
const LIMIT = 150_000;

/** Milliseconds for one test: a mutant makes some wait for ever. */
const TEST_LIMIT = 20_000;
