import type { Io } from "./output.ts";

/**
 * Reads single keys from a terminal, without Enter, until it is disposed of. Ctrl-C still interrupts the process.
 *
 * Escape sequences, such as those of arrow keys, come as one key.
 */
export class Keyboard implements Disposable {
  readonly #stdin: Io["stdin"];
  readonly #listener: (bytes: Buffer | string) => void;

  constructor({ stdin }: Pick<Io, "stdin">, onKey: (key: string) => void) {
    this.#stdin = stdin;
    this.#listener = (bytes) => {
      const text = String(bytes);
      for (const key of text.startsWith("\u001b") ? [text] : text) {
        // In raw mode the terminal sends no signal for it.
        if (key === CTRL_C) process.kill(process.pid, "SIGINT");
        else onKey(key);
      }
    };
    stdin.setRawMode?.(true);
    stdin.on("data", this.#listener);
  }

  [Symbol.dispose](): void {
    this.#stdin.off("data", this.#listener);
    this.#stdin.setRawMode?.(false);
    // A stream that is read keeps the process alive.
    this.#stdin.pause();
  }
}

const CTRL_C = "\u0003";
