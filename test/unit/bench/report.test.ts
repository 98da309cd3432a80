import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { describeOrigin, resultsFile, writeReport } from "../../../scripts/bench/report.ts";

test("the results of a benchmark say when, of which commit, with which versions and where", async () => {
  const origin = describeOrigin();
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
  expect(origin.code.commit).toBe(commit);
  expect(Object.keys(origin.code.versions)).toEqual(["ioredis", "bullmq", "bee-queue"]);
  const directory = await mkdtemp(join(tmpdir(), "delayline-report-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, "results", "memory.json");
  await writeReport(file, { ...origin, results: [{ name: "memory", values: [282, 283] }] });
  const { at, ...others } = JSON.parse(await readFile(file, "utf8")) as { at: string };
  expect(new Date(at)).toEqual(origin.at);
  expect(others).toMatchObject({ code: origin.code, results: [{ values: [282, 283] }] });
});

test("their file is beside the page, and its name has the date and the commit", () => {
  const at = new Date("2026-11-23T10:00:00Z");
  const file = (isChanged: boolean) =>
    resultsFile("compare", { at, code: { commit: "abc1234", isChanged, versions: {} } });
  expect(file(false)).toBe("docs/benchmarks/results/compare-2026-11-23-abc1234.json");
  expect(file(true)).toBe("docs/benchmarks/results/compare-2026-11-23-abc1234-changed.json");
});
