import axe from "axe-core";
import type { Page } from "playwright-core";

/** Lists a page's accessibility faults as axe-core finds them, by all of its rules. */
export async function audit(page: Page): Promise<string[]> {
  await page.evaluate(`window.axe ?? (() => { ${axe.source} })()`);
  return await page.evaluate<string[]>(RUN);
}

// Runs in the page, whose globals TypeScript does not know here.
const RUN = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
    id + ": " + html.slice(0, 120) + " " + failureSummary.replace(/\\s+/g, " "))))`;
