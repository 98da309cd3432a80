import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { expect, inject, it, onTestFinished } from "vitest";
import { serveDashboard, type ServeOptions } from "../../src/tools/dashboard/index.ts";
import { newLine, type TestLine } from "../helpers/delayline.ts";
import { startOwnServer } from "../helpers/own-server.ts";

/** A test that needs Chromium. Without Chromium it is skipped, or fails if `CI` is set. */
export const inBrowser = it.skipIf(inject("browserUrl") === "" && !process.env["CI"]);

let browser: Promise<Browser> | undefined;

/** A Redis server, a client and a dashboard for one test. All of them end with the test. */
export interface Board {
  /** The URL of the dashboard. */
  readonly url: string;
  readonly redisUrl: string;
  readonly line: TestLine;
}

/**
 * Starts a board. `seed` fills Redis before the dashboard starts: later it would only find new queues in its next
 * search.
 */
export async function openBoard(
  seed: (line: TestLine, redisUrl: string) => Promise<void>,
  options: ServeOptions = {},
): Promise<Board> {
  expect(inject("whyNoBrowser")).toBe("");
  const { url: redisUrl } = await startOwnServer();
  const line = newLine({ redis: redisUrl });
  await seed(line, redisUrl);
  const served = await serveDashboard({
    redis: redisUrl,
    readOnly: false,
    payloads: true,
    ...options,
  });
  onTestFinished(() => served.close());
  return { url: served.url, redisUrl, line };
}

interface Visit extends Pick<
  BrowserContextOptions,
  "viewport" | "colorScheme" | "reducedMotion" | "timezoneId"
> {
  /** Console errors that the test provokes. */
  readonly expected?: RegExp;
}

/** Opens a page. Errors in its console, such as violations of the Content-Security-Policy, fail the test. */
export async function visit(url: string, { expected, ...options }: Visit = {}): Promise<Page> {
  browser ??= chromium.connect(inject("browserUrl"));
  const context = await (await browser).newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  // A busy machine may take long to render a page.
  page.setDefaultTimeout(30_000);
  const errors: string[] = [];
  page.on("console", (message) => {
    const isBad = message.type() === "error" || message.type() === "warning";
    if (isBad && !expected?.test(message.text())) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("dialog", (dialog) => {
    errors.push(`a script ran: ${dialog.message()}`);
    void dialog.dismiss();
  });
  onTestFinished(async () => {
    await context.close();
    expect(errors).toEqual([]);
  });
  await page.goto(url);
  return page;
}

/**
 * Saves screenshots of the page, or of what fits the window, light and dark, in the folder `DASHBOARD_SCREENSHOTS`. Does nothing if it is not
 * set.
 */
export async function shoot(page: Page, name: string, fullPage = true): Promise<void> {
  const folder = process.env["DASHBOARD_SCREENSHOTS"];
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`), fullPage });
  }
}
