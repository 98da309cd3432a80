import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";
import { PLACES } from "../src/nouns/places.ts";
import { KEYS, queueKeys } from "../src/queue/keys.ts";
import { FLOORS, FOUNDATIONS } from "../test/unit/rooms.ts";

// Writes the tables of docs/internals.md that repeat the code: its places, its rooms and its keys. `npm run docs` calls it.

/** The page whose tables this script writes. */
const PATH = fileURLToPath(new URL("../docs/internals.md", import.meta.url));

/** Each table stands behind a comment that names it, up to the next empty line. */
const TABLES: Readonly<Record<string, () => string>> = { places, rooms, keys };

/** Returns the page as it has to be. */
export async function internalsPage(): Promise<string> {
  let page = readFileSync(PATH, "utf8");
  for (const [name, make] of Object.entries(TABLES)) {
    const marked = new RegExp(`(<!-- ${name}: .*? -->\n\n)(?:\\|.*\n)*`);
    if (!marked.test(page)) throw new Error(`docs/internals.md has no mark for its ${name}`);
    page = page.replace(marked, (_, mark: string) => `${mark}${make()}\n\n`);
  }
  return await format(page, { ...(await resolveConfig(PATH)), filepath: PATH });
}

function keys(): string {
  const names = queueKeys("orders");
  const rows = Object.entries(KEYS).map(
    ([name, { type, holds }]) =>
      `| \`${names[name as keyof typeof names]}\` | ${type} | ${holds} |`,
  );
  return ["| key | type | holds |", "| - | - | - |", ...rows].join("\n");
}

/** The keys by their names in the code. */
function places(): string {
  const words = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(", ");
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

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PATH, await internalsPage());
