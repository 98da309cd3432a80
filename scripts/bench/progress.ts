/** Tells a waiting person what is going on, on stderr. */
export class Progress {
  #shownAt = -Infinity;

  /** One line on a terminal, overwritten by the next; elsewhere a line every few seconds. */
  show(text: string): void {
    if (process.stderr.isTTY) {
      process.stderr.write(`\r\x1b[K${text}`);
    } else if (performance.now() > this.#shownAt + 3000) {
      this.#shownAt = performance.now();
      process.stderr.write(`${text}\n`);
    }
  }

  /** Makes room for the results. */
  clear(): void {
    if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  }
}
