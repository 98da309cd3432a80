import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path/posix";
import { fileURLToPath } from "node:url";

// The pages of the site, at the paths that they have in the repository, and where their links lead.

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The page that lists all others. */
export const INDEX = "docs/README.md";

/** Where the repository is read. Pages of the package link by this address to what it does not hold. */
const REPOSITORY = "https://github.com/delayline/delayline/blob/main/";

/** Pages outside of `docs`. */
const BESIDE = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];

/** A link in the contents. `path` is relative to the repository, and may end with an anchor. */
interface Entry {
  readonly title: string;
  readonly path: string;
  /** What a reader wants who looks for it. */
  readonly about: string | undefined;
}

interface Section {
  readonly title: string;
  readonly entries: readonly Entry[];
}

/** The contents as the index tells them: its sections, and the links in each. */
export function contents(): Section[] {
  const [, ...sections] = readFileSync(ROOT + INDEX, "utf8").split(/^## /m);
  return sections.map((text) => {
    const [title = "", ...lines] = text.split("\n");
    return { title, entries: lines.flatMap(entriesOf) };
  });
}

/** The links of a line. The first cell of a row says what its pages are for. */
function entriesOf(line: string): Entry[] {
  const [, about] = /^\| (.*?) +\|/.exec(line) ?? [];
  return Array.from(line.matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g), ([, title = "", link = ""]) => ({
    title,
    path: pathOf(INDEX, link),
    about,
  }));
}

/**
 * A page's link as the site has it: relative to another page, or the address of what the site does not hold.
 *
 * @param front the name of the README on the site.
 */
export function linkOnSite(page: string, link: string, front = "README.md"): string {
  const path = pathOf(page, link);
  if (isAddress(path) || link.startsWith("#")) return link;
  if (!isPage(path)) return REPOSITORY + path;
  return relative(dirname(page), path.replace(/^README\.md/, front));
}

/** What a link of a page leads to, relative to the repository. The address of another site stays as it is. */
function pathOf(page: string, link: string): string {
  if (link.startsWith(REPOSITORY)) return link.slice(REPOSITORY.length);
  return isAddress(link) ? link : join(dirname(page), link);
}

function isAddress(link: string): boolean {
  return /^[a-z]+:/.test(link);
}

function isPage(path: string): boolean {
  const [file = ""] = path.split("#");
  return BESIDE.includes(file) || (file.startsWith("docs/") && file.endsWith(".md"));
}

/** The anchor of a heading, as GitHub makes it. */
export function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
    .replaceAll(" ", "-");
}
