import { once } from "node:events";
import { escapeControl } from "../../inspect/escape-control.ts";
import type { Io } from "./io.ts";
import { formatTable, type Column } from "./table.ts";

/** Writes results to stdout, and what is said about the work to stderr. */
export class Output {
  readonly #io: Io;
  #isInPlace = false;

  constructor(io: Io) {
    this.#io = io;
  }

  /** Whether a person reads it. */
  get isTty(): boolean {
    return this.#io.stdout.isTTY === true;
  }

  /** Whether it may be coloured: a person reads it, and has not said no. */
  get hasColours(): boolean {
    const { NO_COLOR: noColour, TERM: term } = this.#io.env;
    return this.isTty && (noColour ?? "") === "" && term !== "dumb";
  }

  /** Writes lines, of which nothing acts on a terminal; resolves when more can be written. */
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

  /** Writes a table, as wide as the terminal at most; under each row the lines that belong to it. */
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

  /** Writes to the top of the terminal's cleared screen from now on, if there is one. */
  clear(): void {
    if (this.hasColours) this.#io.stdout.write("\u001b[2J\u001b[H");
  }

  /** Says something about the work. */
  say(line: string): void {
    this.#endProgress();
    this.#io.stderr.write(`${harmless(line)}\n`);
  }

  /** Says how far the work is: in place, where a person looks on, and nothing otherwise. */
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

/** A line, with the colours that are ours. */
function harmless(line: string): string {
  return line
    .split(COLOUR)
    .map((part, i) => (i % 2 === 0 ? escapeControl(part) : part))
    .join("");
}

// oxlint-disable-next-line no-control-regex
const COLOUR = /(\u001b\[(?:0|1|22|31|33|36)m)/;

/** JSON in one line of which nothing acts on a terminal. What is read from it is what was written. */
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

/** A name or key in quotes, as a person may read it. */
export function quoted(text: string): string {
  return `"${escapeControl(text)}"`;
}
