import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// The pages for users and maintainers, and how tests read them.

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** A page of Markdown; `path` is relative to the repository. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** Every page written by hand. */
export function allPages(): Page[] {
  const onTop = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
  const inDocs = readdirSync(`${ROOT}docs`, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md") && !path.startsWith("reference/"))
    .map((path) => `docs/${path}`);
  return [...onTop.filter((path) => existsSync(ROOT + path)), ...inDocs.toSorted()].map(readPage);
}

export function readPage(path: string): Page {
  return { path, text: readFileSync(ROOT + path, "utf8") };
}

/** The text without the contents of code blocks, with the same line numbers. */
export function prose({ text }: Page): string {
  let isCode = false;
  const lines = text.split("\n").map((line) => {
    const isFence = /^\s*```/.test(line);
    if (isFence) isCode = !isCode;
    return isCode || isFence ? "" : line;
  });
  return lines.join("\n");
}

/** The anchors of a page's headings on GitHub. */
export function anchorsOf(page: Page): Set<string> {
  const counts = new Map<string, number>();
  const anchors = new Set<string>();
  for (const [, title = ""] of prose(page).matchAll(/^#{1,6} (.*)$/gm)) {
    const plain = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const slug = plain.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, "").replaceAll(" ", "-");
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    anchors.add(count === 0 ? slug : `${slug}-${count}`);
  }
  return anchors;
}

/**
 * The rows of the first table under a heading, by cells, without its head.
 *
 * @throws {Error} if there is no such table: a renamed table must not pass as an empty one.
 */
export function tableUnder(page: Page, heading: string): string[][] {
  const lines = page.text.split("\n");
  const start = lines.findIndex(
    (line) => /^#+ /.test(line) && line.replace(/^#+ /, "") === heading,
  );
  const rest = start === -1 ? [] : lines.slice(start + 1);
  const end = rest.findIndex((line) => /^#+ /.test(line));
  const section = end === -1 ? rest : rest.slice(0, end);
  const first = section.findIndex((line) => line.startsWith("|"));
  const table = first === -1 ? [] : section.slice(first);
  const after = table.findIndex((line) => !line.startsWith("|"));
  const rows = (after === -1 ? table : table.slice(0, after)).slice(2);
  if (rows.length === 0) throw new Error(`${page.path} has no table under "${heading}"`);
  return rows.map((row) =>
    row
      .replace(/^\||\|$/g, "")
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("\\|", "|")),
  );
}

/** The words in backticks in a cell. */
export function wordsIn(cell = ""): string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, word = ""]) => word);
}

/** A code block, and the line of its page on which its code begins. */
export interface Snippet {
  readonly page: string;
  readonly line: number;
  readonly code: string;
}

/** The code blocks of a page that are marked with this language and nothing else. */
export function snippetsOf({ path, text }: Page, language: string): Snippet[] {
  const pattern = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms");
  return Array.from(text.matchAll(pattern), ({ index, 1: code = "" }) => ({
    page: path,
    line: text.slice(0, index).split("\n").length + 1,
    code,
  }));
}
