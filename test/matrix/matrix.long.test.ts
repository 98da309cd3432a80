import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { expect, test } from "vitest";
import type { Result } from "../../scripts/matrix/results.ts";
import { bundle } from "../helpers/bundle.ts";
import { Site } from "../fault/partitions/site.ts";
import { Wire } from "../fault/partitions/wire.ts";
import { STRIKES } from "./attacks.ts";
import { runCell, type Outcome } from "./cell.ts";
import {
  allCells,
  nameOf,
  TOPOLOGIES,
  type Cell,
  type Topology,
} from "../../scripts/matrix/cells.ts";

/*
 * Runs cells of the matrix, one after another. Here only a few, for seconds; `npm run matrix` runs all of them, keeps
 * the results, and writes docs/reliability.md.
 */

const {
  MATRIX_CELLS,
  MATRIX_SECONDS,
  MATRIX_RESULTS,
  MATRIX_UNTIL,
  MATRIX_COMMIT = "",
} = process.env;

/** Cells that together use every kind of queue and all parts of the runner, but no Sentinel and no Cluster. */
const SHORT = [
  "workers-killed/plain/standalone",
  "replies-lost/reliable/standalone",
  "power-lost-everysec/partitioned/standalone",
  "workers-killed/exclusive/standalone",
];

const wanted = new Set(MATRIX_CELLS?.split(",") ?? SHORT);
const seconds = Number(MATRIX_SECONDS ?? 2);

/** No cell begins later (epoch ms). */
const until = Number(MATRIX_UNTIL ?? Infinity);

/** Milliseconds that a cell may take. */
const LONGEST = 180_000 + seconds * 1000;

const results: Result[] = [];

const groups = TOPOLOGIES.map((topology) => ({
  topology,
  cells: allCells().filter((cell) => cell.topology === topology && wanted.has(nameOf(cell))),
})).filter(({ cells }) => cells.length > 0);

test.each(groups)(
  "$topology: nothing is lost, doubled, early or disordered that was promised",
  async ({ topology, cells }) => {
    const program = await bundle(new URL("../fault/workers/matrix-party.ts", import.meta.url));
    let shared = topology === "standalone" ? undefined : await open(topology);
    const faults: string[] = [];
    for (const [i, cell] of cells.entries()) {
      if (Date.now() > until) break;
      const { site, wire, close } = shared ?? (await openFor(cell));
      const first = (i + 1) * 1_000_000;
      const startedAt = performance.now();
      try {
        const outcome = await runCell({ cell, site, wire, program, first, seconds });
        if (MATRIX_RESULTS !== undefined) await keep(MATRIX_RESULTS, cell, site, outcome);
        faults.push(...outcome.faults.map((fault) => `${nameOf(cell)}: ${fault}`));
        if (MATRIX_RESULTS !== undefined) report(cell, outcome, startedAt);
      } catch (error) {
        console.error(error);
        faults.push(`${nameOf(cell)}: ${String(error)}`);
      }
      if (shared === undefined) await close();
      else {
        await site.mend().catch(async (error: unknown) => {
          console.error(error);
          await close();
          shared = await open(topology);
        });
      }
    }
    expect(faults).toEqual([]);
  },
  LONGEST * wanted.size,
);

test("a matrix without cells is none", () => {
  expect(groups.flatMap(({ cells }) => cells)).toHaveLength(wanted.size);
});

interface WiredSite {
  readonly site: Site;
  readonly wire: Wire;
  readonly close: () => Promise<void>;
}

/** A single server, for one cell alone: it may lose all it has. */
async function openFor({ attack }: Cell): Promise<WiredSite> {
  const { persistence = "none" } = STRIKES[attack];
  const isSaved = persistence !== "none";
  const args = isSaved ? ["--appendonly", "yes", "--appendfsync", persistence] : [];
  const site = await Site.standalone({ args });
  return wired(site);
}

async function open(topology: Topology): Promise<WiredSite> {
  return wired(topology === "Cluster" ? await Site.ofCluster() : await Site.ofSentinels(["one"]));
}

function wired(site: Site): WiredSite {
  const close = async () => {
    await Promise.all(
      site.members.map(async ({ server, proxy, redis }) => {
        redis.disconnect();
        await proxy.close();
        await server.stop();
      }),
    );
  };
  return { site, wire: new Wire(site), close };
}

/** Writes all results so far: a run may be broken off. */
async function keep(file: string, cell: Cell, site: Site, outcome: Outcome): Promise<void> {
  results.push({
    cell: nameOf(cell),
    server: await versionOf(site),
    date: new Date().toISOString().slice(0, 10),
    commit: MATRIX_COMMIT,
    cores: availableParallelism(),
    node: process.version,
    seconds,
    ...outcome,
  });
  writeFileSync(file, JSON.stringify(results));
}

/** Such as `Valkey 8.1.1`. */
async function versionOf({ living }: Site): Promise<string> {
  const info = (await living[0]?.redis.info("server")) ?? "";
  const version = (name: string) => new RegExp(`^${name}_version:(.*?)\\s*$`, "m").exec(info)?.[1];
  const valkey = version("valkey");
  return valkey === undefined ? `Redis ${version("redis")}` : `Valkey ${valkey}`;
}

function report(cell: Cell, outcome: Outcome, startedAt: number): void {
  const took = Math.round((performance.now() - startedAt) / 100) / 10;
  console.log(`${nameOf(cell)}, ${took} s: ${JSON.stringify(outcome)}`);
}
