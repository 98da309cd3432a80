import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { allPages, readPage, ROOT, snippetsOf } from "./pages.ts";

/*
 * The programs of docs/recipes: examples/recipes, which `npm run examples` runs, and the projects of Vitest and Jest,
 * which the packaging tests run. Every block of code on a page is a part of one of them.
 */

const PAGES = allPages().filter(({ path }) => /^docs\/recipes\/(?!README)/.test(path));
const PROGRAMS = [
  "examples/recipes",
  "test/packaging/projects/jest",
  "test/packaging/projects/vitest",
]
  .flatMap((folder) => readdirSync(ROOT + folder).map((file) => `${folder}/${file}`))
  .filter((file) => /\.[jt]s$/.test(file));
const TEXTS = PROGRAMS.map((file) => withoutIndent(readFileSync(ROOT + file, "utf8")));

test("there is a program for every page, and a page for every program", () => {
  const pages = PAGES.map(({ path }) => path.replace("docs/", "examples/").replace(/md$/, "ts"));
  const programs = PROGRAMS.filter((file) => file.startsWith("examples/"));
  expect(programs.toSorted()).toEqual(pages.toSorted());
  expect(programs.length).toBeGreaterThan(5);
});

test.each(PAGES)("$path: every block is a part of a program that runs", (page) => {
  const blocks = [...snippetsOf(page, "ts"), ...snippetsOf(page, "js")];
  expect(blocks.length).toBeGreaterThan(0);
  const strangers = blocks.filter(
    ({ code }) => !TEXTS.some((text) => text.includes(withoutIndent(code))),
  );
  expect(strangers.map(({ line }) => line)).toEqual([]);
});

test.each(PAGES)("$path says what happens when things break, and links to its program", (page) => {
  const name = page.path.replace(/^docs\/recipes\/|\.md$/g, "");
  expect(page.text).toMatch(/^## When (things break|a test hangs)$/m);
  expect(page.text).toContain(`(../../examples/recipes/${name}.ts)`);
});

test("the list of recipes has them all", () => {
  const { text } = readPage("docs/recipes/README.md");
  const listed = Array.from(
    text.matchAll(/\]\((.*?\.md)\)/g),
    ([, file]) => `docs/recipes/${file}`,
  );
  expect(listed.toSorted()).toEqual(PAGES.map(({ path }) => path).toSorted());
  expect(existsSync(`${ROOT}${listed[0]}`)).toBe(true);
});

/** The lines without the spaces before them: a part of a function is moved to the left on a page. */
function withoutIndent(code: string): string {
  return code.trim().replaceAll(/^ +/gm, "");
}
