import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { escapeControl } from "../../view/text.ts";

/** The streams, environment and signal of a run: those of the process, or of a test. */
export interface Io {
  readonly stdin: Readable & {
    readonly isTTY?: boolean;
    /** Turns the reading of single keys on and off. Only a terminal has it. */
    readonly setRawMode?: (isRaw: boolean) => unknown;
  };
  readonly stdout: Writable & {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly rows?: number;
  };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborted by Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
}

/** Writes results to stdout, and messages about the work to stderr. */
export class Output {
  readonly #io: Io;
  #hasProgress = false;

  constructor(io: Io) {
    this.#io = io;
  }

  /** Whether stdout is a terminal. */
  get isTty(): boolean {
    return this.#io.stdout.isTTY === true;
  }

  /** Whether to use colours: stdout is a terminal, and neither `NO_COLOR` nor a dumb terminal forbids them. */
  get hasColours(): boolean {
    const { NO_COLOR: noColour, TERM: term } = this.#io.env;
    return this.isTty && (noColour ?? "") === "" && term !== "dumb";
  }

  /** Writes lines with control characters escaped; resolves once the stream accepts more. */
  async print(...lines: readonly string[]): Promise<void> {
    await this.#write(lines.map(harmless));
  }

  async #write(lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    const { stdout, signal } = this.#io;
    const isReady = stdout.write(`${lines.join("\n")}\n`);
    if (!isReady) await once(stdout, "drain", { signal });
  }

  /** Writes a value as one line of JSON. */
  async json(value: unknown): Promise<void> {
    await this.print(toJson(value));
  }

  /** Writes a table no wider than the terminal; `under` holds the lines to print below each row. */
  async table(
    columns: readonly Column[],
    rows: readonly (readonly string[])[],
    under: readonly (readonly string[])[] = [],
  ): Promise<void> {
    const width = this.isTty ? (this.#io.stdout.columns ?? 80) : undefined;
    const [head = "", ...lines] = formatTable(columns, rows, width);
    await this.#write([this.hasColours ? `\u001b[1m${head}\u001b[22m` : head]);
    await this.#write(lines.flatMap((line, i) => [line, ...(under[i] ?? []).map(harmless)]));
  }

  /** Clears the screen, so that the next output starts at its top. Does nothing where colours are not used. */
  clear(): void {
    if (this.hasColours) this.#io.stdout.write("\u001b[2J\u001b[H");
  }

  /** Writes a message about the work to stderr. */
  say(line: string): void {
    this.#endProgress();
    this.#io.stderr.write(`${harmless(line)}\n`);
  }

  /** Shows progress in one line of stderr that the next message overwrites. Does nothing without a terminal. */
  progress(line: string): void {
    if (this.#io.stderr.isTTY !== true) return;
    this.#io.stderr.write(`\r\u001b[K${harmless(line)}`);
    this.#hasProgress = true;
  }

  #endProgress(): void {
    if (this.#hasProgress) this.#io.stderr.write("\r\u001b[K");
    this.#hasProgress = false;
  }
}

/** A line with control characters escaped, except the colours that this command uses. */
function harmless(line: string): string {
  return line
    .split(COLOUR)
    .map((part, i) => (i % 2 === 0 ? escapeControl(part) : part))
    .join("");
}

// oxlint-disable-next-line no-control-regex
const COLOUR = /(\u001b\[(?:0|1|22|31|33|36)m)/;

/**
 * One line of JSON that cannot act on a terminal: control characters are `\u` escapes, which parse to the same value.
 */
export function toJson(value: unknown): string {
  const text = JSON.stringify(value, (_, one: unknown) =>
    one === Infinity || one === -Infinity ? String(one) : one,
  );
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}

/** A name or key in quotes, with control characters escaped. */
export function quoted(text: string): string {
  return `"${escapeControl(text)}"`;
}

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

/** A column of numbers. */
export function numberColumn(label: string): Column {
  return { title: label.toUpperCase(), align: "right" };
}

/** Formats names and values, one pair per line, with the values aligned. */
export function formatPairs(pairs: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `  ${name.padEnd(width)}  ${escapeControl(value)}`.trimEnd());
}

function fit(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1)).trimEnd()}…`;
}

/** The fewest characters to which a column shrinks. */
const LEAST = 8;

/** Breaks a line at `width` characters and indents the rest by `indent`. A word that is too long stays whole. */
export function wrap(line: string, indent = 0, width = 80): string[] {
  if (line.length <= width) return [line];
  const at = line.lastIndexOf(" ", width);
  if (at <= indent) return [line];
  return [line.slice(0, at), ...wrap(" ".repeat(indent) + line.slice(at + 1), indent, width)];
}
