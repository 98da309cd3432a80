import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { bundleInto } from "./bundle.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The file of the `delayline` command, which Node.js runs. */
    command: string;
    /** The same, with a person at its terminal who answers yes to every question. */
    commandWithYes: string;
  }
}

const PROGRAMS = {
  command: "../../src/tools/cli/index.ts",
  commandWithYes: "./programs/answer-yes.ts",
} as const;

/** Bundles the command once for all tests that start it as a process: from its source it takes five times as long. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), "delayline-command-"));
  await Promise.all(
    Object.entries(PROGRAMS).map(async ([name, source]) => {
      const outfile = join(directory, `${name}.mjs`);
      await bundleInto(outfile, fileURLToPath(new URL(source, import.meta.url)));
      project.provide(name as keyof typeof PROGRAMS, outfile);
    }),
  );
  return () => rm(directory, { recursive: true, force: true });
}
