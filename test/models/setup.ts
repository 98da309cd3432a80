import type { TestProject } from "vitest/node";
import { fetchTlc } from "./tlc.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Why TLC cannot run here, or an empty string. */
    whyNoTlc: string;
  }
}

/** Fetches TLC. If that fails, the models are skipped, or fail if `CI` is set. */
export default async function setup(project: TestProject): Promise<void> {
  const failure = await fetchTlc();
  if (failure !== undefined) {
    const verdict = process.env["CI"] ? "fail" : "are skipped";
    console.log(`The models ${verdict}: ${failure}.`);
  }
  project.provide("whyNoTlc", failure ?? "");
}
