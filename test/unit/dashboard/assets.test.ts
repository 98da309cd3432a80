import { readdirSync, readFileSync } from "node:fs";
import { parseSync } from "rolldown/utils";
import { expect, test } from "vitest";
import { page } from "../../../scripts/build/stand-ins.ts";
import { ASSETS } from "../../../src/tools/dashboard/assets.ts";

const dashboard = new URL("../../../src/tools/dashboard/", import.meta.url);

const MADE = ["page/data/tables.js", "page/data/words.js"];

test("the assets are the files of page/ and vendor/, and two that are made", () => {
  const files = ["page", "vendor"].flatMap((folder) =>
    readdirSync(new URL(folder, dashboard), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith(".d.ts"))
      .map(({ parentPath, name }) => `${parentPath}/${name}`.slice(dashboard.pathname.length)),
  );
  expect(files.length).toBeGreaterThan(40);
  expect(Object.keys(ASSETS).toSorted()).toEqual([...files, ...MADE].toSorted());
  const wrong = files.filter(
    (file) => ASSETS[file]?.text !== readFileSync(new URL(file, dashboard), "utf8"),
  );
  expect(wrong).toEqual([]);
});

test("what stands for them in the package has the same texts", () => {
  const exports: { ASSETS?: typeof ASSETS } = {};
  // oxlint-disable-next-line typescript/no-implied-eval -- Generated here.
  new Function("exports", page())(exports);
  expect(saidBy(exports.ASSETS)).toEqual(saidBy(ASSETS));
});

function saidBy(all: typeof ASSETS = {}) {
  return Object.entries(all).map(([path, asset]) => [path, { ...asset, text: read(path, asset) }]);
}

/** What a file of the page says: a script the texts in it, a style sheet all but spaces, quotes and comments. */
function read(path: string, { text }: { readonly text: string }): string {
  if (!path.startsWith("page/")) return text;
  if (path.endsWith(".js")) return textsIn(text);
  if (!path.endsWith(".css")) return text;
  return text.replaceAll(/\/\*[^]*?\*\/|[\s"']/g, "").replaceAll(";}", "}");
}

/** The texts of a script in a row, without indentation: a sum of some may have become one. */
function textsIn(script: string): string {
  const texts: { readonly start: number; readonly text: string }[] = [];
  JSON.stringify(parseSync("page.js", script).program, (_, node: unknown) => {
    const { type, start = 0, value } = (node ?? {}) as Partial<Record<string, unknown>>;
    const text = type === "TemplateElement" ? (value as { readonly cooked: string }).cooked : value;
    const isText = type === "TemplateElement" || type === "Literal";
    if (isText && typeof text === "string") texts.push({ start: start as number, text });
    return node;
  });
  const inOrder = texts.toSorted((a, b) => a.start - b.start);
  const all = inOrder.map(({ text }) => text).join("");
  return all.replaceAll(/\n[ \t]+/g, "\n");
}

test("every file that the page loads is there", () => {
  const missing = Object.entries(ASSETS).flatMap(([path, { type, text }]) => {
    const named = type.startsWith("text/html")
      ? [...text.matchAll(/(?:src|href)="(?!data:)([^"]+)"/g)].map(([, url]) => `/${url}`)
      : [...text.matchAll(/^(?:import|export)\b[^;]*?from "(\.[^"]+)";$/gm)].map(
          ([, url = ""]) => new URL(url, `http://x/${path}`).pathname,
        );
    return named.filter((url) => !Object.hasOwn(ASSETS, url.slice(1)));
  });
  expect(missing).toEqual([]);
});

test("index.html has no inline scripts or styles, which the policy would block", () => {
  const { text } = ASSETS["page/index.html"] ?? { text: "" };
  expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=/i);
});

test("`npm run typecheck` checks every script of the page", () => {
  const scripts = Object.entries(ASSETS).filter(
    ([path]) => /^page\/.*\.js$/.test(path) && !MADE.includes(path),
  );
  const unchecked = scripts.filter(([, { text }]) => !text.startsWith("// @ts-check\n"));
  expect(scripts.length).toBeGreaterThan(20);
  expect(unchecked.map(([path]) => path)).toEqual([]);
});
