import { escapeControl } from "../../inspect/escape-control.ts";

/** A column of a table. */
export interface Column {
  readonly title: string;
  /** Numbers align right. Defaults to left. */
  readonly align?: "left" | "right";
  /** Whether its cells may be cut to fit the line. Never set for ids: people copy them. Defaults to false. */
  readonly canShrink?: boolean;
}

/**
 * Formats rows under their titles, with two spaces between columns. If lines are longer than `width`, columns that can
 * shrink are cut, to no fewer than {@link LEAST} characters each. Characters that could act on a terminal are escaped.
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

/** Formats names and values, one pair per line, with the values aligned. */
export function formatFacts(facts: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts.map(([name, value]) => `  ${name.padEnd(width)}  ${escapeControl(value)}`.trimEnd());
}

/** A number with thousands separators, and if a noun is given, how many of what: `1 message`, `2,000 messages`. */
export function formatCount(count: number, noun?: string): string {
  const digits = count.toLocaleString("en-US");
  return noun === undefined ? digits : `${digits} ${noun}${count === 1 ? "" : "s"}`;
}

function fit(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1)).trimEnd()}…`;
}

/** The fewest characters to which a column shrinks. */
const LEAST = 8;
