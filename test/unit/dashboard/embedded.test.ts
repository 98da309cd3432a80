import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { embedded } from "../../../scripts/embed.ts";
import { ASSETS } from "../../../src/dashboard/embedded.ts";

test("the embedded page is that of page/ and vendor/: `npx tsx scripts/embed.ts` writes it", () => {
  const path = new URL("../../../src/dashboard/embedded.ts", import.meta.url);
  expect(readFileSync(path, "utf8") === embedded()).toBe(true);
});

test("each file that the page asks for is there", () => {
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

test("nothing in the page is inline, which the policy would refuse", () => {
  const { text } = ASSETS["page/index.html"] ?? { text: "" };
  expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=/i);
});

test("each file of the page asks for its types to be checked, as `npm run typecheck` does", () => {
  const scripts = Object.entries(ASSETS).filter(([path]) => /^page\/.*\.js$/.test(path));
  const unchecked = scripts.filter(([, { text }]) => !text.startsWith("// @ts-check\n"));
  expect(scripts.length).toBeGreaterThan(20);
  expect(unchecked.map(([path]) => path)).toEqual([]);
});
