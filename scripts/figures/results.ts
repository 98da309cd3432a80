import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Summary } from "../bench/figure.ts";

/*
 * What `npm run bench` has measured, as it was written to docs/benchmarks/results. All figures of the documentation are
 * read from here, those of the newest run.
 */

/** The folder of the results, relative to the repository. */
export const FOLDER = "docs/benchmarks/results";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The figures of one contest or workload, as one run measured them. */
export interface Measured {
  /** What `npm run bench --` takes: `compare memory` is a contest, `memory` a workload of Delayline alone. */
  readonly name: string;
  readonly title: string;
  /** The file of the run, without its folder. */
  readonly file: string;
  /** The day of the run, such as `2026-11-29`. */
  readonly day: string;
  /** The commit that was measured, short. */
  readonly commit: string;
  /** Whether the code differed from the commit. */
  readonly isChanged: boolean;
  readonly rounds: number;
  readonly machine: string;
  /** The figures by who has them, in the order of the columns: the libraries of a contest, or Delayline alone. */
  readonly columns: readonly Column[];
}

interface Column {
  readonly peer: string;
  readonly title: string;
  /** How the library was set up; empty for a workload. */
  readonly settings: string;
  readonly figures: readonly Kept[];
}

/** A figure as JSON keeps it: what could not be measured is null. */
export type Kept = Omit<Summary, "median"> & { readonly median: number | null };

interface Report {
  readonly at: string;
  readonly code: { readonly commit: string; readonly isChanged: boolean };
  readonly machine: { readonly processor: string; readonly node: string; readonly redis: string };
  readonly isQuick: boolean;
  readonly rounds: number;
  readonly peers?: Readonly<Record<string, { readonly title: string; readonly settings: string }>>;
  readonly results: readonly {
    readonly name: string;
    readonly title: string;
    readonly figures: readonly Kept[] | Readonly<Record<string, readonly Kept[]>>;
  }[];
}

/** The newest figures of each contest and workload that was kept, by name and in its order. */
export function newestResults(): ReadonlyMap<string, Measured> {
  const reports = readdirSync(`${ROOT}${FOLDER}`).map((file) => ({
    file,
    ...(JSON.parse(readFileSync(`${ROOT}${FOLDER}/${file}`, "utf8")) as Report),
  }));
  const all = reports
    .toSorted((a, b) => (a.at < b.at ? -1 : 1))
    .flatMap((report) => report.results.map((result) => measured(report, result)))
    .map((one) => [one.name, one] as const);
  return new Map([...new Map(all)].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The newest figures of a contest or workload.
 *
 * @throws {Error} if none are kept.
 */
export function newest(name: string): Measured {
  const found = newestResults().get(name);
  if (found === undefined) throw new Error(`${FOLDER} has no results of ${name}`);
  return found;
}

/** In this contest, ioredis alone with one small script runs in the place of Redisson's algorithm. */
const IOREDIS_ALONE = {
  contest: "start",
  peer: "redisson",
  column: { peer: "bare", title: "ioredis alone" },
};

function measured(
  { file, at, code, machine, rounds, peers }: Report & { readonly file: string },
  { name, title, figures }: Report["results"][number],
): Measured {
  const byPeer = Array.isArray(figures)
    ? [["delayline", figures as readonly Kept[]] as const]
    : Object.entries(figures as Readonly<Record<string, readonly Kept[]>>);
  return {
    name: peers === undefined ? name : `compare ${name}`,
    title,
    file,
    day: at.slice(0, 10),
    ...code,
    rounds,
    machine: `${machine.processor}, Node ${machine.node}, ${machine.redis}`,
    columns: byPeer
      .filter(([, own]) => own.length > 0)
      .map(([peer, own]) => ({
        peer,
        title: peers?.[peer]?.title ?? "Delayline",
        settings: peers?.[peer]?.settings ?? "",
        figures: own,
        ...(name === IOREDIS_ALONE.contest && peer === IOREDIS_ALONE.peer
          ? IOREDIS_ALONE.column
          : {}),
      })),
  };
}
