import type { Io } from "../session/output.ts";

/** A terminal's size, if it does not tell. */
const USUAL = { columns: 80, rows: 24 } as const;

/**
 * The whole terminal, until it is disposed of: then what was there before is back.
 *
 * Lines that are wider than the terminal are cut by the terminal itself.
 */
export class Screen implements Disposable {
  readonly #stdout: Io["stdout"];
  readonly #onResize: () => void;

  /** @param onResize called when the terminal has another size. */
  constructor({ stdout }: Pick<Io, "stdout">, onResize: () => void) {
    this.#stdout = stdout;
    this.#onResize = onResize;
    stdout.write(`${ESC}[?1049h${ESC}[?25l${ESC}[?7l`);
    stdout.on("resize", onResize);
  }

  get columns(): number {
    return this.#stdout.columns || USUAL.columns;
  }

  get rows(): number {
    return this.#stdout.rows || USUAL.rows;
  }

  /** Shows these lines and nothing else. They must hold no control characters except colours. */
  draw(lines: readonly string[]): void {
    // Each line is overwritten in place, and only its rest erased: a cleared screen would flicker.
    const text = lines
      .slice(0, this.rows)
      .map((line) => `${line}${ESC}[K`)
      .join("\r\n");
    this.#stdout.write(`${ESC}[H${text}${ESC}[J`);
  }

  [Symbol.dispose](): void {
    this.#stdout.off("resize", this.#onResize);
    this.#stdout.write(`${ESC}[?7h${ESC}[?25h${ESC}[?1049l`);
  }
}

const ESC = "\u001b";
