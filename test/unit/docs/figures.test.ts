import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Summary } from "../../../scripts/bench/figure.ts";
import { format } from "../../../scripts/bench/table.ts";
import { allPages, prose, readPage, ROOT, tableUnder } from "./pages.ts";

const PAGE = readPage("docs/benchmarks.md");
const ORIGINS = tableUnder(PAGE, "When, and of which code");

test("every table of the benchmarks has a date, a commit and its raw results, if they were kept", () => {
  const sections = PAGE.text.split(/^## /m).slice(1);
  const measured = sections.filter((text) => /^\|.*-:/m.test(text));
  const titles = measured.map((text) => text.slice(0, text.indexOf("\n")));
  expect(ORIGINS.flatMap(([figures = ""]) => figures.split(", ")).toSorted()).toEqual(
    titles.toSorted(),
  );
  for (const [, date, commits = "", raw = ""] of ORIGINS) {
    expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
    for (const commit of commits.split(", ")) expect(commit).toMatch(/^[\da-f]{7,8}$/);
    const [, file] = /\((benchmarks\/results\/.*?)\)/.exec(raw) ?? [];
    if (file === undefined) continue;
    expect(existsSync(`${ROOT}docs/${file}`)).toBe(true);
    expect(file).toContain(`-${date}-${commits}.json`);
  }
});

/** The contests, and the files of their raw results. */
const CONTESTS = ORIGINS.flatMap(([figures = "", , , raw = ""]) => {
  const [, file] = /\((benchmarks\/results\/compare-.*?)\)/.exec(raw) ?? [];
  return file === undefined ? [] : figures.split(", ").map((contest) => [contest, file] as const);
});

test.each(CONTESTS)("the table of %s holds the medians of its raw results", (contest, file) => {
  const { results } = JSON.parse(readFileSync(`${ROOT}docs/${file}`, "utf8")) as {
    results: { name: string; figures: Record<string, Summary[]> }[];
  };
  const measured = results.filter(({ name }) => name === contest);
  const all = measured.flatMap(({ figures }) => Object.values(figures).flat());
  for (const [row = "", ...cells] of tableUnder(PAGE, contest)) {
    // Without a median, a note says why.
    const medians = all.filter(({ name, median }) => name === row && (median as unknown) !== null);
    const told = medians.map(({ median, unit }) => format(median, unit));
    const shown = cells
      .filter((cell) => /^\d/.test(cell))
      .map((cell) => cell.replace(/(?: \(|, \d[\d,]* falling).*/, ""));
    expect(told).toEqual(expect.arrayContaining(shown));
  }
});

test.each([
  ["README.md", "Delayline"],
  ["docs/delayline-or-bullmq.md", "Figures"],
])("the figures of %s are those of the benchmarks", (path, heading) => {
  const rows = tableUnder(readPage(path), heading);
  expect(rows.length).toBeGreaterThan(1);
  expect(tableUnder(PAGE, "acknowledged")).toEqual(expect.arrayContaining(rows));
});

test("the memory of a message is what was measured, wherever it is told", () => {
  const { results } = JSON.parse(
    readFileSync(`${ROOT}docs/benchmarks/results/goals-memory-2026-11-23-6dccfdf.json`, "utf8"),
  ) as { results: { figures: { name: string; median: number }[] }[] };
  const bytesOf = (place: string, size: number) => {
    const figures = results.flatMap((one) => one.figures);
    const found = figures.find(({ name }) => name === `${place}, payload ${size} B`);
    return Math.round(found?.median ?? NaN);
  };
  const places = ["delayed", "ready", "retrying"];
  const sizing = tableUnder(readPage("docs/operations/setting-up.md"), "Memory and sizing");
  for (const [i, size] of [100, 1024].entries()) {
    const measured = places.map((place) => bytesOf(place, size));
    const [, delayed = "", , ready = "", retrying = ""] = sizing[i] ?? [];
    expect(numbers([delayed, ready, retrying])).toEqual(measured);
    const column = tableUnder(PAGE, "memory by place").map((row) => row[i + 1] ?? "");
    expect(numbers(column)).toEqual(measured);
  }
});

test("every page says the same about how soon other processes obey a pause", () => {
  const told = allPages().flatMap((page) =>
    Array.from(
      prose(page).matchAll(/within (\w+)(?:;| \()\s*if\s+(?:the )?wake-ups?\b/g),
      ([, bound]) => bound,
    ),
  );
  expect(told.length).toBeGreaterThan(1);
  expect(new Set(told)).toEqual(new Set(["milliseconds"]));
});

function numbers(cells: readonly string[]): number[] {
  return cells.map((cell) => Number(cell.replace(/,|[^\d,].*$/g, "")));
}
