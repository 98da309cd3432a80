import { once } from "node:events";
import { escapeControl } from "../../inspect/escape-control.ts";
import type { Io } from "./io.ts";
import { formatTable, type Column } from "./table.ts";

/** Writes results to stdout, and messages about the work to stderr. */
export class Output {
  readonly #io: Io;
  #isInPlace = false;

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
    this.#isInPlace = true;
  }

  #endProgress(): void {
    if (this.#isInPlace) this.#io.stderr.write("\r\u001b[K");
    this.#isInPlace = false;
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
