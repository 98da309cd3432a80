import { expect, test } from "vitest";
import { ABOUT } from "../../../scripts/matrix/about.ts";
import { allCells, isOn, nameOf } from "../../../scripts/matrix/cells.ts";
import { filledPage, PAGES } from "../../../scripts/matrix/page.ts";
import { readResults, type Result } from "../../../scripts/matrix/results.ts";
import { seriesOf } from "../../../scripts/matrix/series.ts";
import { readPage, tableUnder } from "./pages.ts";

const RESULTS = readResults();

test.each(PAGES)("%s shows the results that are kept", async (path) => {
  expect(await filledPage(path, RESULTS)).toBe(readPage(path).text);
});

test("each attack of the matrix has a row, and a section with a table", () => {
  const attacks = new Set(allCells().map(({ attack }) => attack));
  expect(new Set(Object.keys(ABOUT))).toEqual(attacks);
  const details = readPage("docs/project/attacks.md");
  for (const { title } of Object.values(ABOUT)) {
    expect(tableUnder(details, title).length).toBeGreaterThan(0);
    expect(readPage("docs/reliability.md").text).toContain(`| [${title.toLowerCase()}](`);
  }
});

test("each page shows its parts", () => {
  const shown = PAGES.map((path) => {
    const names = readPage(path).text.matchAll(/<!-- matrix: (.*?) -->/g);
    return Array.from(names, ([, name]) => name);
  });
  expect(shown).toEqual([
    ["headline", "servers", "attacks", "faults"],
    ["runs", "details"],
    ["readme"],
  ]);
});

test("a result belongs to a cell, and each cell has one for each server at most", () => {
  const cells = new Map(allCells().map((cell) => [nameOf(cell), cell]));
  const isOfMatrix = (result: Result) => {
    const cell = cells.get(result.cell);
    return cell !== undefined && isOn(seriesOf(result), cell);
  };
  expect(RESULTS.filter((result) => !isOfMatrix(result))).toEqual([]);
  const keys = RESULTS.map((result) => `${result.cell} ${seriesOf(result)}`);
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys.length).toBeGreaterThan(0);
});

test("what a table counts as a fault is told in words", () => {
  const broken = RESULTS.filter(
    ({ lost, twice, early, unwanted, disordered }) =>
      lost + twice + early + (unwanted ?? 0) + (disordered ?? 0) > 0,
  );
  expect(broken.filter(({ faults }) => faults.length === 0)).toEqual([]);
});
