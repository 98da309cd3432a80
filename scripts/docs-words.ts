import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/*
 * Counts the words of the pages under docs/, those written by hand and those that scripts write.
 *
 *   npm run docs:words                 # the pages, the longest first
 *   npm run docs:words -- main         # beside those of a commit
 *
 * Words are counted as `wc -w` does. Written by scripts are: pages that begin with `<!-- Written by`, and what stands behind
 * the mark of a table (docs-tables.ts) or of results of the matrix (matrix/page.ts). Nobody has to read those from end to end.
 */

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** The words of a page. */
export interface Words {
  readonly byHand: number;
  readonly byScript: number;
}

/** Counts the words of a page. */
export function wordsOf(text: string): Words {
  const all = count(text);
  const byHand = text.startsWith("<!-- Written by") ? 0 : count(withoutGenerated(text));
  return { byHand, byScript: all - byHand };
}

/** The pages under docs/ by path, as they are now. */
export function pagesNow(): ReadonlyMap<string, string> {
  const paths = readdirSync(`${ROOT}docs`, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md") && !path.startsWith("reference/"))
    .map((path) => `docs/${path.replaceAll("\\", "/")}`);
  return new Map(paths.map((path) => [path, readFileSync(ROOT + path, "utf8")]));
}

function withoutGenerated(text: string): string {
  return text
    .replaceAll(/(<!-- matrix: .*? -->).*?(<!-- matrix end -->)/gs, "$1\n$2")
    .replaceAll(/(<!-- \w+: written by .*? -->\n\n)(?:(?:\|.*\n)+|```\n(?:.+\n)*)/g, "$1");
}

function count(text: string): number {
  return text.split(/\s+/).filter((word) => word !== "").length;
}

const git = (...args: string[]) =>
  execFileSync("git", args, { cwd: ROOT, encoding: "utf8", maxBuffer: 1e8 });

function pagesAt(commit: string): ReadonlyMap<string, string> {
  const paths = git("ls-tree", "-r", "--name-only", commit, "docs/").trim().split("\n");
  return new Map(
    paths
      .filter((path) => path.endsWith(".md"))
      .map((path) => [path, git("show", `${commit}:${path}`)]),
  );
}

const number = (n: number) => (n === 0 ? "-" : n.toLocaleString("en-US")).padStart(10);

function print(pages: ReadonlyMap<string, string>, before: ReadonlyMap<string, string>): void {
  const paths = [...new Set([...pages.keys(), ...before.keys()])];
  const rows = paths.map((path) => ({
    path,
    now: wordsOf(pages.get(path) ?? ""),
    old: wordsOf(before.get(path) ?? ""),
  }));
  const line = (path: string, now: Words, old: Words) => {
    const others = before.size === 0 ? "" : `${number(old.byHand)}${number(old.byScript)}`;
    console.log(`${number(now.byHand)}${number(now.byScript)}${others}  ${path}`);
  };
  const heads = before.size === 0 ? "" : `${"before".padStart(10)}${"by script".padStart(10)}`;
  console.log(`${"by hand".padStart(10)}${"by script".padStart(10)}${heads}`);
  const longest = ({ now, old }: (typeof rows)[number]) => Math.max(now.byHand, old.byHand);
  for (const { path, now, old } of rows.toSorted((a, b) => longest(b) - longest(a))) {
    line(path, now, old);
  }
  line(`${pages.size} pages`, total(pages), total(before));
}

/** The words of several pages together. */
export function total(pages: ReadonlyMap<string, string>): Words {
  const all = [...pages.values()].map(wordsOf);
  return {
    byHand: all.reduce((sum, { byHand }) => sum + byHand, 0),
    byScript: all.reduce((sum, { byScript }) => sum + byScript, 0),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , commit] = process.argv;
  print(pagesNow(), commit === undefined ? new Map() : pagesAt(commit));
}
