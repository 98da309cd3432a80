import { format, resolveConfig } from "prettier";
import { fileURLToPath } from "node:url";
import { cellWithSpread, originOf, table } from "./tables.ts";
import { newestResults, type Measured } from "./results.ts";

/** The page with every figure that is kept, which `npm run docs` writes. */
export const PATH = "docs/project/figures.md";

const HEAD = `<!-- Written by scripts/docs-tables.ts from docs/benchmarks/results. -->

# All figures

The newest figures of every benchmark: medians, and the least and the greatest of several rounds. [Benchmarks](../benchmarks.md)
says what they mean. Numbers of one table were measured in turns on one machine; ratios between tables mean little.`;

const FILE = fileURLToPath(new URL(`../../${PATH}`, import.meta.url));

/** Returns the page. */
export async function figuresPage(): Promise<string> {
  const all = [...newestResults().values()];
  const contests = all.filter(isContest);
  const others = all.filter((measured) => !isContest(measured));
  const page = [HEAD, settings(contests), ...[...contests, ...others].map(section)].join("\n\n");
  return await format(page, { ...(await resolveConfig(FILE)), filepath: FILE });
}

const isContest = ({ name }: Measured) => name.startsWith("compare ");

/** How each library was set up. */
function settings(contests: readonly Measured[]): string {
  const columns = contests.flatMap((contest) => contest.columns);
  return [...new Map(columns.map(({ title, settings: own }) => [title, own]))]
    .map(([title, own]) => `- **${title}**: ${own}.`)
    .join("\n");
}

function section(measured: Measured): string {
  const { name, title, file, rounds, machine, columns } = measured;
  const names = columns[0]?.figures.map((figure) => figure.name) ?? [];
  const rows = names.map((row, i) => [
    row.trim(),
    ...columns.map(({ figures }) =>
      cellWithSpread(
        figures[i]?.name === row ? figures[i] : figures.find((one) => one.name === row),
      ),
    ),
  ]);
  const count = rounds === 1 ? "one round" : `${rounds} rounds`;
  return [
    `## ${name}`,
    `${title}. ${originOf(measured)}, ${count}, ${machine} ([raw](../benchmarks/results/${file})).`,
    table(["", ...columns.map((column) => column.title)], rows),
  ].join("\n\n");
}
