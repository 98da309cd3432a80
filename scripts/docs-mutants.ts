import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";
import { CONDITIONS } from "../test/simulation/mutants/conditions.ts";
import { FLOW } from "../test/simulation/mutants/flow.ts";
import { HISTORY } from "../test/simulation/mutants/history.ts";
import type { Mutant } from "../test/simulation/mutants/mutant.ts";
import { EXCLUSIVE, PARTITIONS } from "../test/simulation/mutants/partitions.ts";
import { PLAIN } from "../test/simulation/mutants/plain.ts";
import { RELIABLE } from "../test/simulation/mutants/reliable.ts";
import { RESTORE } from "../test/simulation/mutants/restore.ts";
import { REVOKE } from "../test/simulation/mutants/revoke.ts";
import { SCHEDULES } from "../test/simulation/mutants/schedules.ts";
import { MUTANTS } from "../test/simulation/mutants/table.ts";

// Writes the page of all mutants. `npm run docs` calls it.

/** The page. */
export const PATH = "docs/project/mutants.md";

const FILE = fileURLToPath(new URL(`../${PATH}`, import.meta.url));

const SECTIONS: readonly (readonly [string, readonly Mutant[]])[] = [
  ["Every queue", PLAIN],
  ["Conditions", CONDITIONS],
  ["Flow", FLOW],
  ["Schedules", SCHEDULES],
  ["Reliable queues", RELIABLE],
  ["Revoked messages", REVOKE],
  ["Partitions, and exclusive consumers", [...PARTITIONS, ...EXCLUSIVE]],
  ["Restored backups", RESTORE],
  ["Faults that there were once", HISTORY],
];

/** What found a mutant when it was last tried; see docs/project/simulator.md. */
interface Found {
  /** The world, and how many runs it took. */
  readonly world?: string;
  readonly seed?: number;
  /** Test files that fail, two at most. Undefined if it was not tried. */
  readonly tests?: readonly string[];
}

/** By the names of the mutants. */
export function found(): Readonly<Record<string, Found>> {
  const file = new URL("../test/simulation/mutants/found.json", import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")) as Record<string, Found>;
}

/** Returns the page. */
export async function mutantsPage(): Promise<string> {
  const listed = new Set(SECTIONS.flatMap(([, mutants]) => mutants));
  const others = MUTANTS.filter((mutant) => !listed.has(mutant));
  const sections = others.length > 0 ? [...SECTIONS, ["Others", others] as const] : SECTIONS;
  const all = Object.entries(found()).filter(([name]) => MUTANTS.some((one) => one.name === name));
  const seen = all.filter(([, { world }]) => world !== undefined).length;
  const page = [
    "<!-- Written by scripts/docs-mutants.ts from test/simulation/mutants. -->",
    "# Mutants",
    `Slips that a programmer might make, and what found them. [The simulator](simulator.md#does-it-bite) says how they are tried. ` +
      `Its worlds found ${seen} of ${MUTANTS.length}.`,
    ...sections.flatMap(([title, mutants]) => [`## ${title}`, tableOf(mutants)]),
  ].join("\n\n");
  return await format(page, { ...(await resolveConfig(FILE)), filepath: FILE });
}

function tableOf(mutants: readonly Mutant[]): string {
  const verdicts = found();
  const rows = mutants.map(({ name, breaks }) => {
    const { world, seed, tests } = verdicts[name] ?? {};
    const files = tests?.map((test) => `\`${test}\``).join(", ");
    const byTests = files === "" ? "none found" : (files ?? "-");
    return `| ${breaks} | ${world === undefined ? "-" : `${world}, ${seed}`} | ${byTests} |`;
  });
  return ["| broken | by world, seed | by tests |", "| - | - | - |", ...rows].join("\n");
}
