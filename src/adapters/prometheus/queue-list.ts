import type { Delayline } from "../../client/delayline.ts";

/**
 * The names of the queues whose numbers are read. With `"all"` it searches the keys of Redis once a minute, in the
 * background: only the first scrape waits for the search.
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

  /** Never rejects. `open` returns the names of the queues that the client has open. */
  async names(open: () => Iterable<string>): Promise<readonly string[]> {
    if (this.#queues !== "all") return this.#queues;
    if (performance.now() - this.#foundAt >= MAX_AGE) {
      this.#search ??= this.#find().finally(() => (this.#search = undefined));
    }
    if (this.#found === undefined) await this.#search;
    // The search does not find an empty plain queue that has been idle for an hour, but the client may have it open.
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

/** Milliseconds between two searches. */
const MAX_AGE = 60_000;
