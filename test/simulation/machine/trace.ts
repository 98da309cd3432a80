import { createHash, type Hash } from "node:crypto";

/** What happened in a run, in order: a hash of all of it, and on request its text. */
export class Trace {
  readonly #hash: Hash = createHash("sha256");
  readonly #print: ((line: string) => void) | undefined;
  readonly #last: string[] = [];
  length = 0;

  /** `print` receives a line for each event. */
  constructor(print?: (line: string) => void) {
    this.#print = print;
  }

  /** Adds an event. */
  add(at: number, text: string): void {
    const line = `${++this.length} ${at.toFixed(3)} ${text}`;
    this.#hash.update(line).update("\n");
    this.#last.push(line);
    if (this.#last.length > MEMORY) this.#last.shift();
    this.#print?.(line);
  }

  /** Adds bytes to the hash alone. */
  mix(bytes: Buffer): void {
    this.#hash.update(bytes);
  }

  /** The last events. */
  get tail(): readonly string[] {
    return this.#last;
  }

  /** The hash of everything so far. May be asked once. */
  digest(): string {
    return this.#hash.digest("hex").slice(0, 16);
  }
}

const MEMORY = 12;

/** Text for people: no control characters, and not long. */
export function shown(words: readonly (Buffer | string)[], longest = 160): string {
  const text = words
    .map((word) => word.toString("latin1"))
    .map((word) => word.replaceAll(/[^ -~]/g, "."))
    .map((word) => (word.length > 48 ? `${word.slice(0, 45)}...` : word))
    .join(" ");
  return text.length > longest ? `${text.slice(0, longest - 3)}...` : text;
}
