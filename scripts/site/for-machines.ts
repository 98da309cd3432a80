import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { contents, linkOnSite, ROOT } from "./contents.ts";

/** Writes every page as Markdown beside its HTML, and `llms.txt`, which lists them: https://llmstxt.org. */
export async function writeForMachines(site: string, pages: readonly string[]): Promise<void> {
  for (const page of pages) {
    const file = join(site, page);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, withLinksOnSite(page, await readFile(ROOT + page, "utf8")));
  }
  await writeFile(join(site, "llms.txt"), await llmsText());
}

function withLinksOnSite(page: string, text: string): string {
  return text.replaceAll(/\]\(([^)\s]+)\)/g, (_, link: string) => `](${linkOnSite(page, link)})`);
}

async function llmsText(): Promise<string> {
  const { name, description } = JSON.parse(await readFile(`${ROOT}package.json`, "utf8")) as {
    readonly name: string;
    readonly description: string;
  };
  const sections = contents().map(({ title, entries }) => {
    const lines = entries.map(
      (entry) =>
        `- [${entry.title}](${entry.path})${entry.about === undefined ? "" : `: ${entry.about}`}`,
    );
    return [`## ${title}`, ...lines].join("\n");
  });
  return `${[`# ${name}`, `> ${description}`, ...sections].join("\n\n")}\n`;
}
