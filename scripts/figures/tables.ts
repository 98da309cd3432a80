import { format } from "../bench/table.ts";
import { newest, type Kept, type Measured } from "./results.ts";

// The tables of figures on the pages. Each begins with the day and the commit.

/** Which figures a table shows, and under which names. */
interface Choice {
  /** The contest or workload. */
  readonly of: string;
  /** The libraries, and how the table calls them; all if left out. */
  readonly columns?: Readonly<Record<string, string | undefined>>;
  /** The figures; all but the counts of lost messages if left out. */
  readonly rows?: RegExp;
}

/** A table of the newest medians. */
export function figureTable({ of, columns, rows = /^(?!lost\b)/ }: Choice): string {
  const measured = newest(of);
  const shown = measured.columns.filter(({ peer }) => columns === undefined || peer in columns);
  const names = shown[0]?.figures.map(({ name }) => name).filter((name) => rows.test(name)) ?? [];
  return table(
    [originOf(measured), ...shown.map(({ peer, title }) => columns?.[peer] ?? title)],
    names.map((name) => [
      name,
      ...shown.map(({ figures }) => cell(figures.find((figure) => figure.name === name))),
    ]),
  );
}

/** The day and the commit that were measured: `2026-11-29, b351609e`. */
export function originOf({ day, commit, isChanged }: Measured): string {
  return `${day}, ${commit}${isChanged ? ", changed" : ""}`;
}

/** A median with its unit, or why there is none. */
export function cell(figure: Kept | undefined): string {
  if (figure === undefined) return "";
  const { median, unit, note } = figure;
  if (median === null) return note ?? "-";
  return `${format(median, unit)}${note === undefined ? "" : `, ${note}`}`;
}

/** The least and the greatest of several rounds, behind the median. */
export function cellWithSpread(figure: Kept | undefined): string {
  if (figure === undefined || figure.median === null || figure.min === figure.max) {
    return cell(figure);
  }
  const { median, unit, min, max, note } = figure;
  const spread = `${format(median, unit)} (${format(min, "")} .. ${format(max, "")})`;
  return note === undefined ? spread : `${spread}, ${note}`;
}

/** A table of Markdown whose first column is text, and the others numbers. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, i) => (i === 0 ? "-" : "-:"));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** One figure of a workload, or of a library in a contest. */
export function figureOf(
  of: string,
  name: string,
  peer = "delayline",
): Kept & { readonly median: number } {
  const column = newest(of).columns.find((one) => one.peer === peer);
  const found = column?.figures.find((figure) => figure.name === name);
  if (found === undefined || found.median === null)
    throw new Error(`${of} has no "${name}" of ${peer}`);
  return { ...found, median: found.median };
}
