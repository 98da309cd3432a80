/** Shows the progress on stderr. */
export class Progress {
  #shownAt = -Infinity;

  /** Shows one line. On a terminal it replaces the last one; elsewhere a line appears every few seconds. */
  show(text: string): void {
    if (process.stderr.isTTY) {
      process.stderr.write(`\r\x1b[K${text}`);
    } else if (performance.now() > this.#shownAt + 3000) {
      this.#shownAt = performance.now();
      process.stderr.write(`${text}\n`);
    }
  }

  /** Clears the line, to make room for the results. */
  clear(): void {
    if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  }
}
