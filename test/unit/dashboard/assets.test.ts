import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { page } from "../../../scripts/build/stand-ins.ts";
import { ASSETS } from "../../../src/tools/dashboard/assets.ts";

const dashboard = new URL("../../../src/tools/dashboard/", import.meta.url);

test("the assets are the files of page/ and vendor/", () => {
  const files = ["page", "vendor"].flatMap((folder) =>
    readdirSync(new URL(folder, dashboard), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => `${parentPath}/${name}`.slice(dashboard.pathname.length)),
  );
  expect(files.length).toBeGreaterThan(40);
  expect(Object.keys(ASSETS).toSorted()).toEqual(files.toSorted());
  const wrong = files.filter(
    (file) => ASSETS[file]?.text !== readFileSync(new URL(file, dashboard), "utf8"),
  );
  expect(wrong).toEqual([]);
});

test("what stands for them in the package is the same, but for indentation and comments", () => {
  const exports: { ASSETS?: typeof ASSETS } = {};
  // oxlint-disable-next-line typescript/no-implied-eval -- Generated here.
  new Function("exports", page())(exports);
  expect(codeOf(exports.ASSETS)).toEqual(codeOf(ASSETS));
  for (const [path, { text }] of Object.entries(exports.ASSETS ?? {})) {
    if (path.startsWith("page/")) expect(codeIn(text).join("\n"), path).toBe(text.trim());
  }
});

function codeOf(all: typeof ASSETS = {}) {
  return Object.entries(all).map(([path, asset]) => [path, { ...asset, text: codeIn(asset.text) }]);
}

/** The lines of a file that are neither empty nor comments, without their indentation. */
function codeIn(text: string): string[] {
  let isInside = false;
  return text.split("\n").flatMap((line) => {
    const code = line.trim();
    isInside ||= code.startsWith("/*");
    const isComment = isInside || code.startsWith("//") || code === "";
    if (code.endsWith("*/")) isInside = false;
    return isComment ? [] : [code];
  });
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
  const scripts = Object.entries(ASSETS).filter(([path]) => /^page\/.*\.js$/.test(path));
  const unchecked = scripts.filter(([, { text }]) => !text.startsWith("// @ts-check\n"));
  expect(scripts.length).toBeGreaterThan(20);
  expect(unchecked.map(([path]) => path)).toEqual([]);
});
