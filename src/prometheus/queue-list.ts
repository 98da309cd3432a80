import type { Delayline } from "../client/delayline.ts";

/**
 * The names of the queues whose numbers are read. Where it is all of them, the keys are gone through once a minute, beside the
 * scrapes: only the first one waits for it.
 */
export class QueueList {
  readonly #line: Delayline;
  readonly #queues: readonly string[] | "all";
  readonly #onError: (error: unknown) => void;
  readonly #closing = new AbortController();
  #found: readonly string[] | undefined;
  #foundAt = -Infinity;
  #search: Promise<void> | undefined;

  constructor(
    line: Delayline,
    queues: readonly string[] | "all",
    onError: (error: unknown) => void,
  ) {
    this.#line = line;
    this.#queues = queues === "all" ? queues : [...new Set(queues)];
    this.#onError = onError;
  }

  /** Never rejects. `open` returns those that the client has open. */
  async names(open: () => Iterable<string>): Promise<readonly string[]> {
    if (this.#queues !== "all") return this.#queues;
    if (performance.now() - this.#foundAt >= MAX_AGE) {
      this.#search ??= this.#find().finally(() => (this.#search = undefined));
    }
    if (this.#found === undefined) await this.#search;
    // A plain queue that has been idle for an hour is not found, but may be open.
    return [...new Set([...open(), ...(this.#found ?? [])])];
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#search;
  }

  async #find(): Promise<void> {
    const { signal } = this.#closing;
    const names: string[] = [];
    try {
      for await (const name of this.#line.queues({ signal })) names.push(name);
      this.#found = names;
      this.#foundAt = performance.now();
    } catch (error) {
      if (!signal.aborted) this.#onError(error);
    }
  }
}

/** Milliseconds after which the queues are looked for again. */
const MAX_AGE = 60_000;
