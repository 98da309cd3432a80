import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { embedded } from "../../../scripts/embed.ts";
import { ASSETS } from "../../../src/tools/dashboard/embedded.ts";

test("embedded.ts matches page/ and vendor/ (`npx tsx scripts/embed.ts` writes it)", () => {
  const path = new URL("../../../src/tools/dashboard/embedded.ts", import.meta.url);
  expect(readFileSync(path, "utf8") === embedded()).toBe(true);
});

test("every file that the page loads is embedded", () => {
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
