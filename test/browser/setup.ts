import { chromium, type BrowserServer } from "playwright-core";
import type { TestProject } from "vitest/node";
import { findChromium } from "./chromium.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The WebSocket endpoint of the Chromium that all tests share; empty if there is none. */
    browserUrl: string;
    /** Why there is no Chromium; empty if there is one. */
    whyNoBrowser: string;
  }
}

/** Starts one Chromium for all tests. Without Chromium the tests are skipped, or fail if `CI` is set. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await start().catch((error: unknown) => {
    const [reason] = String(error).split("\n");
    return `Chromium failed to start: ${reason}`;
  });
  const isStarted = typeof server !== "string";
  project.provide("browserUrl", isStarted ? server.wsEndpoint() : "");
  project.provide("whyNoBrowser", isStarted ? "" : server);
  if (isStarted) return () => server.close();
  const verdict = process.env["CI"] ? "fail" : "are skipped";
  console.log(`The tests of the dashboard's page ${verdict}: ${server}.`);
  return async () => {};
}

async function start(): Promise<BrowserServer | string> {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    return "no Chromium on the PATH, and CHROMIUM is not set";
  }
  return await chromium.launchServer({ executablePath, host: "127.0.0.1" });
}
