/** Some items of a reading, and the position behind them. */
export interface Slice<Item> {
  readonly items: readonly Item[];
  /** The position of the next slice; undefined if this is the last. */
  readonly next: number | undefined;
}

/** How many items are kept, for paging back. */
const MAX_KEPT = 1000;

/** How long one slice may take (ms). After that the slice has what was found so far. */
const MAX_TIME = 1000;

/**
 * Reads a source slice by slice, while a user pages through it. Continues where it stopped, and keeps what it read, so
 * that paging back shows the same items.
 */
export class Reading<Item> {
  readonly #source: AsyncGenerator<Item | undefined, void, void>;
  readonly #stop: AbortController;
  /** The items that are kept, from position `#dropped` on. */
  readonly #items: Item[] = [];
  #dropped = 0;
  /** The next item, if an earlier slice ran out of time while it was being read. */
  #coming: Promise<IteratorResult<Item | undefined, void>> | undefined;
  #isAtEnd = false;
  /** Settles when the latest slice has: slices are read one after another. */
  #turn: Promise<unknown> = Promise.resolve();

  /**
   * The source yields undefined after each step of a search, so that the reading can stop there when time is up.
   * Otherwise a search that finds nothing would run to its end. `stop` aborts the running step.
   */
  constructor(
    source: AsyncGenerator<Item | undefined, void, void>,
    stop: AbortController = new AbortController(),
  ) {
    this.#source = source;
    this.#stop = stop;
  }

  /**
   * Returns at most `limit` items from position `from` on. A search that finds little returns fewer, or none, before
   * its end. Returns undefined if the items are no longer kept.
   */
  async slice(from: number, limit: number): Promise<Slice<Item> | undefined> {
    const slicing = this.#turn.then(() => this.#slice(from, limit));
    this.#turn = slicing.catch(() => {});
    return await slicing;
  }

  /** Stops reading, and ends the source. */
  async close(): Promise<void> {
    void this.#coming?.catch(() => {});
    this.#stop.abort();
    await this.#source.return();
  }

  async #slice(from: number, limit: number): Promise<Slice<Item> | undefined> {
    if (from < this.#dropped || from > this.#end) return undefined;
    await this.#readTo(from + limit + 1);
    const items = this.#items.slice(from - this.#dropped, from - this.#dropped + limit);
    const next = from + items.length;
    const surplus = this.#items.length - MAX_KEPT;
    if (surplus > 0) {
      this.#items.splice(0, surplus);
      this.#dropped += surplus;
    }
    return { items, next: next < this.#end || !this.#isAtEnd ? next : undefined };
  }

  get #end(): number {
    return this.#dropped + this.#items.length;
  }

  /** Reads on until position `end`, or until time is up. */
  async #readTo(end: number): Promise<void> {
    const { promise: late, cancel } = after(MAX_TIME);
    const until = performance.now() + MAX_TIME;
    try {
      while (this.#end < end && !this.#isAtEnd && performance.now() < until) {
        this.#coming ??= this.#source.next();
        const found = await Promise.race([this.#coming, late]);
        if (found === undefined) return;
        this.#coming = undefined;
        if (found.done === true) this.#isAtEnd = true;
        else if (found.value !== undefined) this.#items.push(found.value);
      }
    } finally {
      cancel();
    }
  }
}

function after(milliseconds: number): { promise: Promise<undefined>; cancel: () => void } {
  let timer: NodeJS.Timeout | undefined;
  const promise = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds);
  });
  return { promise, cancel: () => clearTimeout(timer) };
}
