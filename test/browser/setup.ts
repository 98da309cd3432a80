import { chromium, type BrowserServer } from "playwright-core";
import type { TestProject } from "vitest/node";
import { findChromium } from "./chromium.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where the one Chromium listens that all tests share; an empty string: there is none. */
    browserUrl: string;
    /** Why there is none. */
    whyNoBrowser: string;
  }
}

/** Starts one Chromium for all tests; where there is none they are skipped, but where `CI` is set they fail. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await start().catch((error: unknown) => {
    const [reason] = String(error).split("\n");
    return `Chromium does not start: ${reason}`;
  });
  const isThere = typeof server !== "string";
  project.provide("browserUrl", isThere ? server.wsEndpoint() : "");
  project.provide("whyNoBrowser", isThere ? "" : server);
  if (isThere) return () => server.close();
  const verdict = process.env["CI"] ? "fail" : "are skipped";
  console.log(`The tests of the dashboard's page ${verdict}: ${server}.`);
  return async () => {};
}

async function start(): Promise<BrowserServer | string> {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    return "there is no Chromium on the PATH, and CHROMIUM is not set";
  }
  return await chromium.launchServer({ executablePath, host: "127.0.0.1" });
}
