import { escapeControl } from "../../inspect/escape-control.ts";

/** A column of a table. */
export interface Column {
  readonly title: string;
  /** Numbers stand on the right. Defaults to left. */
  readonly align?: "left" | "right";
  /** Whether it may be cut where the line is too long. Ids are not: somebody copies them. */
  readonly canShrink?: boolean;
}

/**
 * Rows under their titles, in columns two spaces apart. Where `width` is given, columns that can shrink are cut until a
 * line fits, to {@link LEAST} characters each at least. What could act on a terminal is escaped.
 */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width = Infinity,
): string[] {
  const cells = rows.map((row) => row.map(escapeControl));
  const widths = columns.map(({ title }, i) =>
    Math.max(title.length, ...cells.map((row) => (row[i] ?? "").length)),
  );
  let excess = widths.reduce((sum, one) => sum + one, 2 * (columns.length - 1)) - width;
  for (const [i, { canShrink = false }] of columns.entries()) {
    if (!canShrink || excess <= 0) continue;
    const cut = Math.max(0, Math.min(excess, (widths[i] as number) - LEAST));
    widths[i] = (widths[i] as number) - cut;
    excess -= cut;
  }
  const line = (row: readonly string[]) =>
    columns
      .map(({ align = "left" }, i) => {
        const cell = fit(row[i] ?? "", widths[i] as number);
        return align === "right"
          ? cell.padStart(widths[i] as number)
          : cell.padEnd(widths[i] as number);
      })
      .join("  ")
      .trimEnd();
  return [line(columns.map(({ title }) => title)), ...cells.map(line)];
}

/** Names and their values, one a line, the values under each other. */
export function formatFacts(facts: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts.map(([name, value]) => `  ${name.padEnd(width)}  ${escapeControl(value)}`.trimEnd());
}

/** A number with commas between its thousands. */
export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

function fit(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1)).trimEnd()}…`;
}

/** The fewest characters that a column shrinks to. */
const LEAST = 8;
