/**
 * Attacks every kind of queue in every way on every server there is, and writes what came of it into
 * docs/reliability/results.json and, from there, into the pages.
 *
 *   npm run matrix                               # everything: about an hour
 *   npm run matrix -- --minutes 20               # shorter attacks; what is not done in time is left as it was
 *   npm run matrix -- --seconds 30               # longer attacks: as many as are done in time
 *   npm run matrix -- --only Cluster,producers   # cells with one of these in their names
 *   npm run matrix -- --missing                  # what has no result yet, on each server
 *   npm run matrix -- --list                     # the names of the cells
 *   npm run matrix -- --pages                    # writes the pages again, and runs nothing
 *
 * It uses the server on the PATH, and those in the directories of REDIS_SERVERS, as `scripts/server/fetch-servers.sh`
 * makes them. Runs of cells replace older ones. It exits with code 1 if a promise was broken.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { findExecutables, findServer } from "../../src/adapters/testing/find-server.ts";
import { putServerOnPath } from "../server/on-path.ts";
import { allCells, isOn, nameOf } from "./cells.ts";
import { writePages } from "./page.ts";
import { keepResults, readResults, type Result } from "./results.ts";
import { seriesOf, type Series } from "./series.ts";

/** Seconds that a cell takes beside its attack: processes start, leases run out. */
const OVERHEAD = 4;

/** Seconds of an attack, at least and at most. */
const [SHORTEST, LONGEST] = [1, 120];

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "55" },
    seconds: { type: "string" },
    only: { type: "string", default: "" },
    missing: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    pages: { type: "boolean", default: false },
  },
});
const minutes = Number(values.minutes);
for (const name of ["minutes", "seconds"] as const) {
  const value = values[name] ?? "1";
  if (!(Number(value) > 0)) throw new RangeError(`--${name} must be above 0, got "${value}"`);
}

const wanted = values.only.split(",");
const cells = allCells().filter((cell) => wanted.some((part) => nameOf(cell).includes(part)));
if (cells.length === 0) throw new RangeError(`--only must name a cell, got "${values.only}"`);

if (values.list) console.log(cells.map(nameOf).join("\n"));
else if (values.pages) await writePages(keepResults([]));
else await runAll();

async function runAll(): Promise<void> {
  await putServerOnPath();
  const path = process.env["PATH"] ?? "";
  const paths = [path, ...serverDirectories().map((directory) => directory + delimiter + path)];
  const plans = await Promise.all(
    paths.map(async (PATH) => {
      const series = await seriesAt(PATH);
      const done = values.missing ? cellsDoneOn(series) : new Set<string>();
      const names = cells.filter((cell) => isOn(series, cell)).map(nameOf);
      return { PATH, names: names.filter((name) => !done.has(name)) };
    }),
  );
  let left = plans.reduce((sum, { names }) => sum + names.length, 0);
  const perCell = Math.floor((minutes * 60) / left - OVERHEAD);
  const seconds = Number(values.seconds ?? Math.min(LONGEST, Math.max(SHORTEST, perCell)));
  console.log(`${left} runs on ${paths.length} servers, attacks of ${seconds} s`);
  const commit = commitOfCode();
  const end = Date.now() + minutes * 60_000;
  for (const { PATH, names } of plans) {
    if (names.length === 0) continue;
    const until = Date.now() + ((end - Date.now()) * names.length) / left;
    left -= names.length;
    const results = await run({ PATH, names, seconds, until, commit });
    if (results.some(({ faults }) => faults.length > 0)) process.exitCode = 1;
  }
  await writePages(readResults());
}

/** The directories in REDIS_SERVERS that have a server. */
function serverDirectories(): string[] {
  const root = process.env["REDIS_SERVERS"];
  if (root === undefined) return [];
  if (!existsSync(root)) throw new Error(`REDIS_SERVERS is ${root}, which does not exist`);
  return readdirSync(root)
    .toSorted()
    .map((name) => resolve(root, name))
    .filter((directory) =>
      ["redis-server", "valkey-server"].some(
        (program) => findExecutables(program, { PATH: directory }).length > 0,
      ),
    );
}

/** The last commit that changed the code under test. */
function commitOfCode(): string {
  const args = ["log", "-1", "--format=%h", "--abbrev=7", "--", "src"];
  return execFileSync("git", args, { encoding: "utf8" }).trim();
}

/** The series of the server of a PATH. */
async function seriesAt(PATH: string): Promise<Series> {
  const { path } = await findServer({ ...process.env, PATH });
  // "Valkey server v=8.1.1 sha=..."
  const text = execFileSync(path, ["--version"], { encoding: "utf8" });
  const [, name, version] = /^(\w+) server v=([\d.]+)/.exec(text) ?? [];
  return seriesOf({ server: `${name} ${version}` });
}

/** The cells that have a result on a server of this series. */
function cellsDoneOn(series: Series): Set<string> {
  const some = readResults().filter((result) => seriesOf(result) === series);
  return new Set(some.map(({ cell }) => cell));
}

interface RunOptions {
  readonly PATH: string;
  readonly names: readonly string[];
  readonly seconds: number;
  /** No cell begins later (epoch ms). */
  readonly until: number;
  readonly commit: string;
}

/** Runs the cells on the server of a PATH, and keeps the results. */
async function run({ PATH, names, seconds, until, commit }: RunOptions): Promise<Result[]> {
  const directory = mkdtempSync(join(tmpdir(), "delayline-matrix-"));
  const file = join(directory, "results.json");
  try {
    const args = ["run", "--config", "test/vitest.config.ts", "test/matrix"];
    const env = {
      ...process.env,
      PATH,
      REDIS_URL: "",
      MATRIX_CELLS: names.join(","),
      MATRIX_SECONDS: String(seconds),
      MATRIX_RESULTS: file,
      MATRIX_COMMIT: commit,
      MATRIX_UNTIL: String(Math.floor(until)),
    };
    const vitest = spawn("vitest", args, { env, stdio: "inherit" });
    const [code] = (await once(vitest, "exit")) as [number | null];
    if (code !== 0) process.exitCode = 1;
    const results = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Result[]) : [];
    keepResults(results);
    return results;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
