import { chromium } from "playwright-core";
import type { TestProject } from "vitest/node";
import { findChromium } from "./chromium.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where the one Chromium listens that all tests share; an empty string: there is none. */
    browserUrl: string;
  }
}

/** Starts one Chromium for all tests; where there is none they are skipped, but not where `CI` is set. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    const notice = "there is no Chromium on the PATH, and CHROMIUM is not set";
    if (process.env["CI"])
      throw new Error(`The tests of the dashboard's page cannot run: ${notice}.`);
    console.log(`The tests of the dashboard's page are skipped: ${notice}.`);
    project.provide("browserUrl", "");
    return async () => {};
  }
  const server = await chromium.launchServer({ executablePath, host: "127.0.0.1" });
  project.provide("browserUrl", server.wsEndpoint());
  return () => server.close();
}
