import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ageOf, hasHistory, isCommit } from "../../../scripts/figures/history.ts";
import { figuresPage, PATH } from "../../../scripts/figures/page.ts";
import { FOLDER, newest, newestResults } from "../../../scripts/figures/results.ts";
import { figureOf } from "../../../scripts/figures/tables.ts";
import { readResults } from "../../../scripts/matrix/results.ts";
import { allPages, prose, readPage, ROOT } from "./pages.ts";

// The figures of the pages: tables.test.ts holds the tables against the results.

const BENCHMARKS = readPage("docs/benchmarks.md").text;
const CONTESTS = [...newestResults().values()].filter(({ name }) => name.startsWith("compare "));

/** Days by which the code may be newer than the figures of the README. */
const MOST_DAYS = 14;

test("the page of all figures is up to date: `npm run docs` writes it", async () => {
  expect(readPage(PATH).text).toBe(await figuresPage());
});

test("each file of results is the newest of something", () => {
  const shown = new Set([...newestResults().values()].map(({ file }) => file));
  expect(readdirSync(ROOT + FOLDER).filter((file) => !shown.has(file))).toEqual([]);
});

test("no library lost a message, as the page says", () => {
  const counts = CONTESTS.flatMap(({ name, columns }) =>
    columns.flatMap(({ title, figures }) =>
      figures
        .filter((figure) => figure.name.startsWith("lost") && figure.median !== null)
        .map(({ max }) => ({ name, title, max })),
    ),
  );
  expect(counts.length).toBeGreaterThan(20);
  expect(counts.filter(({ max }) => max !== 0)).toEqual([]);
});

describe("what the benchmarks say in short", () => {
  test("acknowledged work", () => {
    const ours = medianOf("compare acknowledged", "handled", "delayline-reliable");
    expect(BENCHMARKS).toMatch(/nine times .* as BullMQ's, and four times .* as bee-queue's/s);
    expect(Math.round(ours / medianOf("compare acknowledged", "handled", "bullmq"))).toBe(9);
    expect(Math.round(ours / medianOf("compare acknowledged", "handled", "bee-queue"))).toBe(4);
  });

  test("lateness", () => {
    expect(BENCHMARKS).toContain("one to two milliseconds in the median");
    for (const peer of ["delayline", "delayline-reliable"]) {
      for (const rate of ["10/s", "200/s", "2,000/s"]) {
        const { median } = figureOf("compare lateness", `lateness p50, ${rate}`, peer);
        expect(median).toBeGreaterThan(1);
        expect(median).toBeLessThan(2);
      }
    }
  });

  test("a million delayed", () => {
    expect(BENCHMARKS).toMatch(
      /\*\*A million delayed\*\* cost about as much per message as ten thousand/,
    );
    for (const peer of ["delayline", "delayline-reliable"]) {
      const of = (delayed: string) =>
        medianOf("compare delayed", `Redis processor time per message, ${delayed} delayed`, peer);
      expect(of("1,000,000") / of("10,000")).toBeLessThan(1.1);
    }
  });

  test("a burst", () => {
    const pings = ["delayline", "delayline-reliable"].map((peer) =>
      medianOf("compare burst", "longest PING", peer),
    );
    const [, said] = /another client of the same Redis by (\d+) ms at most/.exec(BENCHMARKS) ?? [];
    expect(Number(said)).toBe(Math.ceil(Math.max(...pings)));
  });

  test("memory", () => {
    const { median } = figureOf("compare memory", "payload of 100 B");
    expect(BENCHMARKS).toContain(`${Math.round(median)} bytes for a delayed message of 100 bytes`);
    expect(median / medianOf("compare memory", "payload of 100 B", "bullmq")).toBeCloseTo(1 / 3, 1);
  });
});

describe.skipIf(!hasHistory())(
  "the history (a clone without it, or with a part, cannot tell)",
  () => {
    test("every commit that a page names beside a date is there", () => {
      const named = allPages().flatMap((page) =>
        Array.from(
          prose(page).matchAll(/\d{4}-\d\d-\d\d, ([\da-f]{7,10})\b/g),
          ([, commit = ""]) => ({
            page: page.path,
            commit,
          }),
        ),
      );
      expect(named.length).toBeGreaterThan(10);
      expect(named.filter(({ commit }) => !isCommit(commit))).toEqual([]);
    });

    test("a commit that is not there is found", () => {
      expect(isCommit("0123456789")).toBe(false);
      expect(ageOf("compare acknowledged", "0123456789")).toBeUndefined();
    });

    test(`the README's figures are at most ${MOST_DAYS} days older than the code: \`npm run docs:figures\``, () => {
      const matrix = new Set(readResults().map(({ commit }) => commit));
      const commits = [newest("compare acknowledged").commit, ...matrix];
      for (const commit of commits) {
        expect(readPage("README.md").text).toContain(commit);
        const { days } = ageOf("compare acknowledged", commit) ?? { days: Infinity };
        expect([commit, days <= MOST_DAYS]).toEqual([commit, true]);
      }
    });
  },
);

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

function medianOf(of: string, name: string, peer: string): number {
  return figureOf(of, name, peer).median;
}
