import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { allCells, isOn, nameOf } from "./cells.ts";
import { seriesOf } from "./series.ts";

/** The results of all cells, the newest of each. */
const PATH = fileURLToPath(new URL("../../docs/reliability/results.json", import.meta.url));

/** What came of one run of a cell. */
export interface Result {
  /** Its name, such as `workers-killed/plain/standalone`. */
  readonly cell: string;
  /** Such as `Redis 7.0.15`. */
  readonly server: string;
  /** The day of the run, such as `2026-11-23`. */
  readonly date: string;
  /** The last commit that changed the code under test. */
  readonly commit: string;
  readonly cores: number;
  readonly node: string;
  /** How long the attack went on. */
  readonly seconds: number;
  /** How often it struck. */
  readonly strikes: number;
  /** Offers that were acknowledged. */
  readonly messages: number;
  readonly refused: number;
  /** Acknowledged, and never handled, without an excuse. */
  readonly lost: number;
  /** The same, with an excuse. */
  readonly forfeited: number;
  /** Second runs of a handler without an excuse. */
  readonly twice: number;
  /** Second runs with an excuse. */
  readonly again: number;
  readonly early: number;
  /** Handlers of messages whose condition had not held any more; null where there are no conditions. */
  readonly unwanted?: number | null;
  /** Out of order; null where no order is promised. */
  readonly disordered: number | null;
  /** Milliseconds by which the latest message was handled too late, outages included. */
  readonly latest: number;
  /** What broke a promise, in words. */
  readonly faults: readonly string[];
}

/** Reads the results that are kept; none if there is no file. */
export function readResults(): Result[] {
  return existsSync(PATH) ? (JSON.parse(readFileSync(PATH, "utf8")) as Result[]) : [];
}

/** Replaces older results of the same cells on the same servers, and keeps the others that the matrix still has. */
export function keepResults(more: readonly Result[]): Result[] {
  const key = (result: Result) => `${result.cell} ${seriesOf(result)}`;
  const all = new Map([...readResults(), ...more].map((result) => [key(result), result]));
  const cells = new Map(allCells().map((cell) => [nameOf(cell), cell]));
  const isWanted = (result: Result) => {
    const cell = cells.get(result.cell);
    return cell !== undefined && isOn(seriesOf(result), cell);
  };
  const sorted = [...all.values()].filter(isWanted).toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
  // One line each, so that a change shows the cells that it changes.
  writeFileSync(PATH, `[\n${sorted.map((one) => JSON.stringify(one)).join(",\n")}\n]\n`);
  return sorted;
}
