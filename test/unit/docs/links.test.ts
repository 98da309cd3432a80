import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import {
  allPages,
  anchorsOf,
  prose,
  readPage,
  ROOT,
  tableUnder,
  wordsIn,
  type Page,
} from "./pages.ts";

const REPOSITORY = "https://github.com/delayline/delayline/blob/main/";

/** Made by `npm run site`, and not committed. */
const GENERATED = "docs/reference";

/** The paths of all source files. A page names one by as many of its last folders as it likes. */
const SOURCES = ["examples", "scripts", "src", "test"].flatMap((folder) =>
  readdirSync(ROOT + folder, { recursive: true, encoding: "utf8" }).map(
    (path) => `/${folder}/${path.replaceAll("\\", "/")}`,
  ),
);

test.each(allPages())("$path: every link leads to a file, and to a heading of it", (page) => {
  expect(linksOf(page).flatMap((link) => whatIsWrong(page, link) ?? [])).toEqual([]);
});

test("every promise names tests, and all that it names are there", () => {
  const rows = tableUnder(readPage("docs/promises.md"), "Promises");
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.filter((cells) => wordsIn(cells.at(-1)).length === 0)).toEqual([]);
  expect(rows.flatMap((cells) => wordsIn(cells.at(-1))).filter((name) => !isTest(name))).toEqual(
    [],
  );
});

test.each(allPages())("$path links to nothing that the package does not hold", (page) => {
  const targets = linksOf(page).map((link) => normalize(join(dirname(page.path), link)));
  expect(targets.filter((path) => /^(?:test|src|scripts)\//.test(path))).toEqual([]);
});

test.each(allPages())("$path names no source file that is not there", (page) => {
  const names = Array.from(prose(page).matchAll(/`([\w./-]+\.ts)`/g), ([, name = ""]) => name);
  expect(names.filter((name) => !SOURCES.some((path) => path.endsWith(`/${name}`)))).toEqual([]);
});

test("every page is linked in the index, and that in the README", () => {
  expect(linksOf(readPage("README.md"))).toContain("docs/README.md");
  const linked = linksOf(readPage("docs/README.md")).map((link) => normalize(`docs/${link}`));
  const pages = ["guide", "operations", "redisson"].flatMap((folder) =>
    readdirSync(`${ROOT}docs/${folder}`).map((file) => `docs/${folder}/${file}`),
  );
  const own = allPages().map(({ path }) => path);
  const top = own.filter((path) => /^docs\/[^/]+\.md$/.test(path) && path !== "docs/README.md");
  expect([...pages, ...top].filter((path) => !linked.includes(path))).toEqual([]);
});

test("every page for those who change it is linked in their index", () => {
  const index = "docs/project/README.md";
  const linked = linksOf(readPage(index)).map((link) => normalize(`docs/project/${link}`));
  const own = allPages().map(({ path }) => path);
  const pages = own.filter((path) => path.startsWith("docs/project/") && path !== index);
  expect(pages.filter((path) => !linked.includes(path))).toEqual([]);
  expect(pages.length).toBeGreaterThan(5);
});

test.each([
  ["a file that is not there", "[x](missing.md)", "missing.md"],
  ["a heading that is not there", "# Here\n\n[x](#there)", "#there"],
  ["a heading of another page", "[x](README.md#no-such-heading)", "README.md#no-such-heading"],
])("%s is found", (_, text, link) => {
  const page = { path: "page.md", text };
  expect(linksOf(page)).toEqual([link]);
  expect(whatIsWrong(page, link)).toBe(link);
});

test("anchors are those of GitHub", () => {
  const text = "# `take()`, and more\n## A: b & c\n## A: b & c\n```\n# no heading\n```\n";
  expect([...anchorsOf({ path: "page.md", text })]).toEqual([
    "take-and-more",
    "a-b--c",
    "a-b--c-1",
  ]);
});

/** Whether the text names a test or a folder of tests, as in `fault/acl`. */
function isTest(name: string): boolean {
  return [".test.ts", ".long.test.ts", ""].some((kind) => existsSync(`${ROOT}test/${name}${kind}`));
}

/** The links of a page into this repository. */
function linksOf(page: Page): string[] {
  const text = prose(page).replaceAll(/`[^`\n]*`/g, "");
  const home = "../".repeat(page.path.split("/").length - 1);
  return Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link = ""]) =>
    // Pages of the package lead to those that it does not hold by their address.
    link.startsWith(REPOSITORY) ? home + link.slice(REPOSITORY.length) : link,
  ).filter((link) => !/^[a-z]+:/.test(link));
}

/** The link, if its target does not exist. */
function whatIsWrong(page: Page, link: string): string | undefined {
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? page.path : normalize(join(dirname(page.path), path));
  if (target.startsWith(GENERATED)) return undefined;
  if (path !== "" && !existsSync(ROOT + target)) return link;
  if (anchor === undefined) return undefined;
  if (path !== "" && statSync(ROOT + target).isDirectory()) return link;
  const known = anchorsOf(path === "" ? page : readPage(target));
  return known.has(anchor) ? undefined : link;
}
