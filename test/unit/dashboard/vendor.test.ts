import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** The libraries of the dashboard's page, and the file in node_modules that each is a copy of. */
const SOURCES: Readonly<Record<string, string>> = {
  "preact-htm.js": "htm/preact/standalone.module.js",
  "uplot.js": "uplot/dist/uPlot.iife.min.js",
  "uplot.css": "uplot/dist/uPlot.min.css",
  "LICENSE-htm.txt": "htm/LICENSE",
  "LICENSE-preact.txt": "preact/LICENSE",
  "LICENSE-uplot.txt": "uplot/LICENSE",
};

const root = new URL("../../../", import.meta.url);
const vendor = new URL("src/tools/dashboard/vendor/", root);
const read = (url: URL) => readFileSync(url, "utf8");

it("vendor/ holds nothing else", () => {
  expect(readdirSync(vendor).toSorted()).toEqual(Object.keys(SOURCES).toSorted());
});

it.each(Object.entries(SOURCES))("%s is %s, unchanged", (file, source) => {
  expect(read(new URL(file, vendor))).toBe(read(new URL(`node_modules/${source}`, root)));
});
