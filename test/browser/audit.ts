import axe from "axe-core";
import type { Page } from "playwright-core";

/** Lists a page's accessibility faults as axe-core finds them, by all of its rules. */
export async function audit(page: Page): Promise<string[]> {
  return await run(page, {});
}

/** As {@link audit}, by the rules alone that ask for colours. */
export async function auditColours(page: Page): Promise<string[]> {
  return await run(page, { runOnly: ["color-contrast", "link-in-text-block"] });
}

async function run(page: Page, options: object): Promise<string[]> {
  await page.evaluate(`window.axe ?? (() => { ${axe.source} })()`);
  return await page.evaluate<string[]>(
    RUN.replace("OPTIONS", JSON.stringify({ resultTypes: ["violations"], ...options })),
  );
}

// Runs in the page, whose globals TypeScript does not know here.
const RUN = `axe.run(document, OPTIONS).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
    id + ": " + html.slice(0, 120) + " " + failureSummary.replace(/\\s+/g, " "))))`;
