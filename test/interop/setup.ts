import type { TestProject } from "vitest/node";
import { buildJava } from "./java-build.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Why Redisson cannot run here, or an empty string. */
    whyNoRedisson: string;
  }
}

/** Compiles the Java side. If that fails, the tests are skipped, or fail if `CI` is set. */
export default async function setup(project: TestProject): Promise<void> {
  const failure = await buildJava();
  if (failure !== undefined) {
    const verdict = process.env["CI"] ? "fail" : "are skipped";
    console.log(`The tests with Redisson ${verdict}: ${failure}.`);
  }
  project.provide("whyNoRedisson", failure ?? "");
}
