import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { expect, inject, it, onTestFinished } from "vitest";
import { serveDashboard, type ServeOptions } from "../../src/dashboard/index.ts";
import { newLine, type TestLine } from "../helpers/delayline.ts";
import { startOwnServer } from "../helpers/own-server.ts";

/** A test that needs Chromium. Without one it is skipped; where `CI` is set it fails. */
export const inBrowser = it.skipIf(inject("browserUrl") === "" && !process.env["CI"]);

let browser: Promise<Browser> | undefined;

/** A Redis of the test's own, a client, and a dashboard. All of it ends with the test. */
export interface Board {
  /** Where the dashboard is. */
  readonly url: string;
  readonly redisUrl: string;
  readonly line: TestLine;
}

/** Before the dashboard is asked for the first time, `seed` fills the Redis: queues are looked for now and then. */
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

interface Visit extends Pick<BrowserContextOptions, "viewport" | "colorScheme" | "reducedMotion"> {
  /** Console errors that the test causes. */
  readonly expected?: RegExp;
}

/** A page at this address. Errors in its console, and so violations of its Content-Security-Policy, fail the test. */
export async function visit(url: string, { expected, ...options }: Visit = {}): Promise<Page> {
  browser ??= chromium.connect(inject("browserUrl"));
  const context = await (await browser).newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  // A busy machine takes long to draw a page.
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

/** Keeps what the page looks like, light and dark, in the folder that `DASHBOARD_SCREENSHOTS` names, if it does. */
export async function shoot(page: Page, name: string): Promise<void> {
  const folder = process.env["DASHBOARD_SCREENSHOTS"];
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`), fullPage: true });
  }
}
