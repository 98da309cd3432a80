import { expect, test } from "vitest";
import { allCells, isOn, nameOf } from "../../../scripts/matrix/cells.ts";
import { filledPage, PAGES } from "../../../scripts/matrix/page.ts";
import { readResults, type Result } from "../../../scripts/matrix/results.ts";
import { seriesOf } from "../../../scripts/matrix/series.ts";
import { readPage } from "./pages.ts";

const RESULTS = readResults();

test.each(PAGES)("%s shows the results that are kept", async (path) => {
  expect(await filledPage(path, RESULTS)).toBe(readPage(path).text);
});

test("each attack of the matrix has a table, and the README has its line", () => {
  const shown = PAGES.map((path) => {
    const names = readPage(path).text.matchAll(/<!-- matrix: (.*?) -->/g);
    return Array.from(names, ([, name]) => name);
  });
  expect(shown[0]).toEqual(expect.arrayContaining(allCells().map(({ attack }) => attack)));
  expect(shown[0]).toEqual(expect.arrayContaining(["headline", "summary", "faults", "runs"]));
  expect(shown[1]).toEqual(["readme"]);
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
