import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";
import { ABOUT } from "./about.ts";
import { allCells, isOn, nameOf, type AttackName } from "./cells.ts";
import type { Result } from "./results.ts";
import { SERIES, seriesOf } from "./series.ts";

/*
 * The pages that show results are written by hand, but for what stands between `<!-- matrix: name -->` and
 * `<!-- matrix end -->`.
 */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The pages that show results. */
export const PAGES: readonly string[] = [
  "docs/reliability.md",
  "docs/project/attacks.md",
  "README.md",
];

/** Writes the results into all pages. */
export async function writePages(results: readonly Result[]): Promise<void> {
  for (const path of PAGES) writeFileSync(ROOT + path, await filledPage(path, results));
}

/** A page with these results in place of those that it shows. */
export async function filledPage(path: string, results: readonly Result[]): Promise<string> {
  const text = readFileSync(ROOT + path, "utf8");
  const filled = text.replaceAll(
    /(<!-- matrix: (.*?) -->\n).*?(<!-- matrix end -->)/gs,
    (_, begin: string, name: string, end: string) => `${begin}\n${part(name, results)}\n\n${end}`,
  );
  const style = await resolveConfig(ROOT + path, { editorconfig: true });
  return await format(filled, { ...style, filepath: path });
}

function part(name: string, results: readonly Result[]): string {
  const make = PARTS[name];
  if (make === undefined) throw new Error(`there is no part "${name}"`);
  return make(results);
}

const PARTS: Readonly<Record<string, (results: readonly Result[]) => string>> = {
  headline: (results) => `**${headline(results)}**`,
  readme: (results) =>
    `[A matrix of attacks](https://github.com/delayline/delayline/blob/main/docs/reliability.md): ${headline(results)}`,
  servers: byServer,
  attacks: byAttack,
  details,
  faults,
  runs,
};

const ALL = Object.keys(ABOUT) as AttackName[];

/** The result of all cells in one sentence. */
function headline(results: readonly Result[]): string {
  const { messages, strikes, lost, twice, early, unwanted, disordered } = sumOf(results);
  const attacks = unique(results.map(({ cell }) => cell.replace(/\/.*/, ""))).length;
  return (
    `${results.length} runs (${daysOf(results)}, ${unique(results.map(({ commit }) => commit)).join(", ")}), ${count(attacks)} kinds of attack, ${count(strikes)} strikes, ` +
    `${count(messages)} messages: ${count(lost)} lost, ${count(twice)} delivered twice, ` +
    `${count(early)} early, ${count(unwanted)} against their condition, ` +
    `${count(disordered)} out of the order that is promised.`
  );
}

/** The day of the runs, or the first and the last one. */
function daysOf(results: readonly Result[]): string {
  const [first = "none yet", ...others] = unique(results.map(({ date }) => date));
  const last = others.at(-1);
  return last === undefined ? first : `${first} to ${last}`;
}

/** A row for each attack, of all queues, topologies and servers together. */
function byAttack(results: readonly Result[]): string {
  const rows = ALL.map((attack) => {
    const some = results.filter(({ cell }) => cell.startsWith(`${attack}/`));
    const { title } = ABOUT[attack];
    const anchor = title
      .toLowerCase()
      .replaceAll(/[^\w -]/g, "")
      .replaceAll(" ", "-");
    const link = `[${title.toLowerCase()}](project/attacks.md#${anchor})`;
    return [link, count(some.length), count(sumOf(some).strikes), ...figuresOf(some)];
  });
  return table(["attack", "runs", "strikes", ...FIGURES], rows);
}

/** What each attack does, and a row for each queue and topology. */
function details(results: readonly Result[]): string {
  return ALL.map(
    (attack) =>
      `## ${ABOUT[attack].title}\n\n${ABOUT[attack].text}\n\n${attackTable(attack, results)}`,
  ).join("\n\n");
}

/** A row for each server. */
function byServer(results: readonly Result[]): string {
  const rows = SERIES.map((series) => {
    const some = results.filter((result) => seriesOf(result) === series);
    const versions = unique(some.map(({ server }) => server)).join(", ") || series;
    const cellCount = allCells().filter((cell) => isOn(series, cell)).length;
    return [versions, `${some.length} of ${cellCount}`, ...figuresOf(some)];
  });
  return table(["server", "runs", ...FIGURES], rows);
}

/** A row for each queue and topology, of all servers together. */
function attackTable(attack: AttackName, results: readonly Result[]): string {
  const cells = allCells().filter((cell) => cell.attack === attack);
  const rows = cells.map((cell) => {
    const some = results.filter((result) => result.cell === nameOf(cell));
    const wanted = SERIES.filter((series) => isOn(series, cell));
    const missing = wanted.filter((series) => !some.some((one) => seriesOf(one) === series));
    const note = missing.length === 0 ? "" : ` (not run: ${missing.join(", ")})`;
    return [cell.queue, cell.topology + note, count(sumOf(some).strikes), ...figuresOf(some)];
  });
  return table(["queue", "on", "strikes", ...FIGURES], rows);
}

function faults(results: readonly Result[]): string {
  const lines = results.flatMap((result) =>
    result.faults.map((fault) => `- ${result.cell}, ${result.server}: ${fault}`),
  );
  return lines.length === 0 ? "Nothing." : lines.join("\n");
}

/** When, and on what, the runs were made. */
function runs(results: readonly Result[]): string {
  const of = (value: (result: Result) => string | number) =>
    unique(results.map((result) => `${value(result)}`)).join(", ");
  return (
    `Servers: ${of(({ server }) => server)}. Days: ${of(({ date }) => date)}. ` +
    `Code: ${of(({ commit }) => commit)}. Node.js: ${of(({ node }) => node)}. Cores: ${of(({ cores }) => cores)}, shared with other work. ` +
    `Seconds of attack: ${of(({ seconds }) => seconds)}.`
  );
}

const FIGURES = [
  "messages",
  "**lost**",
  "**twice**",
  "**early**",
  "**unwanted**",
  "**order**",
  "lost, not promised",
  "again",
  "latest, s",
];

function figuresOf(some: readonly Result[]): string[] {
  if (some.length === 0) return FIGURES.map(() => "not run");
  const sums = sumOf(some);
  const { messages, lost, twice, early, forfeited, again, latest } = sums;
  const isOrdered = some.some((result) => result.disordered !== null);
  const isConditional = some.some(({ unwanted = null }) => unwanted !== null);
  const unwanted = isConditional ? count(sums.unwanted) : "-";
  const order = isOrdered ? count(sums.disordered) : "-";
  const figures = [messages, lost, twice, early].map(count);
  return [...figures, unwanted, order, count(forfeited), count(again), (latest / 1000).toFixed(1)];
}

function sumOf(results: readonly Result[]) {
  const sum = (value: (result: Result) => number) =>
    results.reduce((total, result) => total + value(result), 0);
  return {
    messages: sum(({ messages }) => messages),
    strikes: sum(({ strikes }) => strikes),
    lost: sum(({ lost }) => lost),
    twice: sum(({ twice }) => twice),
    early: sum(({ early }) => early),
    unwanted: sum(({ unwanted }) => unwanted ?? 0),
    disordered: sum(({ disordered }) => disordered ?? 0),
    forfeited: sum(({ forfeited }) => forfeited),
    again: sum(({ again }) => again),
    latest: Math.max(0, ...results.map(({ latest }) => latest)),
  };
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = header.map((_, i) => (i < header.length - FIGURES.length ? "---" : "--:"));
  return [header, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

const unique = (texts: readonly string[]) => [...new Set(texts)].toSorted();
const count = (n: number) => n.toLocaleString("en-US");
