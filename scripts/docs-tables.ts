import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";
import { GAUGES } from "../src/adapters/prometheus/metrics.ts";
import { PAUSED } from "../src/nouns/numbers.ts";
import { PLACES } from "../src/nouns/places.ts";
import { KEYS, queueKeys } from "../src/queue/keys.ts";
import { FLOORS, FOUNDATIONS } from "../test/unit/rooms.ts";
import { access, commands } from "./docs-access.ts";
import { behaviours } from "./docs-promises.ts";
import { MODEL_TABLES } from "./docs-models.ts";
import { mutantsPage, PATH as MUTANTS } from "./docs-mutants.ts";
import { aheadTable } from "./figures/ahead.ts";
import { figuresPage, PATH as FIGURES } from "./figures/page.ts";
import {
  aloneTable,
  clusterTable,
  memoryTable,
  restingTable,
  speedTable,
} from "./figures/sizing.ts";
import { figureTable } from "./figures/tables.ts";

// Writes the tables of the documentation that repeat the code. `npm run docs` calls it.

const ROOT = fileURLToPath(new URL("../", import.meta.url));

const FENCE = "```";

type Make = () => string | Promise<string>;

/** What most people compare: a reliable queue beside BullMQ. */
const ACKNOWLEDGED = {
  of: "compare acknowledged",
  columns: { "delayline-reliable": "Delayline", bullmq: undefined },
};

/** The tables and blocks of code of each page. Each stands behind a comment that names it, up to the next empty line. */
export const TABLES: Readonly<Record<string, Readonly<Record<string, Make>>>> = {
  "docs/project/internals.md": { places, rooms, keys },
  "docs/project/models/models.md": MODEL_TABLES,
  "docs/guide/prometheus.md": { gauges },
  "docs/operations/setting-up.md": { access, commands },
  "docs/benchmarks.md": {
    acknowledged: () => figureTable({ of: "compare acknowledged" }),
    lateness: () => figureTable({ of: "compare lateness", rows: /^lateness/ }),
    delayed: () => figureTable({ of: "compare delayed", rows: /^(?:script|lateness p99|longest)/ }),
    burst: () => figureTable({ of: "compare burst" }),
    offers: () => figureTable({ of: "compare offers" }),
    memory: () => figureTable({ of: "compare memory" }),
    ahead: aheadTable,
  },
  "docs/operations/sizing.md": {
    memory: memoryTable,
    speed: speedTable,
    alone: aloneTable,
    resting: restingTable,
    cluster: clusterTable,
  },
  "CONTRIBUTING.md": { behaviours },
  "README.md": { figures: () => figureTable({ ...ACKNOWLEDGED, rows: /^(?:handled|Redis)/ }) },
  "docs/delayline-or-bullmq.md": { figures: () => figureTable(ACKNOWLEDGED) },
};

/** Returns a page as it has to be. */
export async function pageWithTables(path: string): Promise<string> {
  let page = readFileSync(ROOT + path, "utf8");
  for (const [name, make] of Object.entries(TABLES[path] ?? {})) {
    const marked = new RegExp(`(<!-- ${name}: .*? -->\n\n)(?:(?:\\|.*\n)+|${FENCE}\n(?:.+\n)*)?`);
    if (!marked.test(page)) throw new Error(`${path} has no mark for its ${name}`);
    const made = await make();
    page = page.replace(marked, (_, mark: string) => `${mark}${made}\n\n`);
  }
  return await format(page, { ...(await resolveConfig(ROOT + path)), filepath: ROOT + path });
}

/** The gauges of Prometheus, with their prefix. */
function gauges(): string {
  const rows = [...GAUGES, { name: "paused", help: PAUSED.help }].map(
    ({ name, help }) => `| \`delayline_${name}\` | ${help} |`,
  );
  return ["| gauge | value |", "| - | - |", ...rows].join("\n");
}

function keys(): string {
  const names = queueKeys("orders");
  const rows = Object.entries(KEYS).map(
    ([name, { type, holds }]) =>
      `| \`${names[name as keyof typeof names]}\` | ${type} | ${holds} |`,
  );
  return ["| key | type | holds |", "| - | - | - |", ...rows].join("\n");
}

/** Words of the code. */
function words(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}

/** The places, with their keys by their names in the code. */
function places(): string {
  const rows = Object.entries(PLACES).map(
    ([state, { keys: held, number, verbs }]) =>
      `| ${state} | ${words(held)} | ${words([number])} | ${words(verbs)} |`,
  );
  const head = "| state | keys | its number | what people can do with what is there |";
  return [head, "| - | - | - | - |", ...rows].join("\n");
}

/** The floors from the top down, and the ground that all stand on. */
function rooms(): string {
  const rows = [...FLOORS, FOUNDATIONS].flatMap((floor, i) =>
    Object.entries(floor).map(([room, rule]) => `| ${i + 1} | \`${room}\` | ${rule} |`),
  );
  return ["| floor | room | rule |", "| - | - | - |", ...rows].join("\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const path of Object.keys(TABLES)) writeFileSync(ROOT + path, await pageWithTables(path));
  writeFileSync(ROOT + FIGURES, await figuresPage());
  writeFileSync(ROOT + MUTANTS, await mutantsPage());
}
